# The JVM of every tool and node here, to be sourced. The class path is written out, in one order: the archives of
# loaded classes (archive.sh) are valid for that path only.
# shellcheck shell=sh disable=SC2034  # used by the scripts that source this one
java="java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto -cp $(echo /opt/kafka/libs/*.jar | tr ' ' ':')"
# What a node logs, Kafka 4.x and 3.x.
logging="-Dlog4j2.configurationFile=/opt/kafka/log4j2.yaml -Dlog4j.configuration=file:/opt/kafka/log4j.properties"

# archived NAME: the option for that archive; nothing where this JVM could not make one.
archived() { [ ! -e "/opt/kafka/$1.jsa" ] || echo "-XX:SharedArchiveFile=/opt/kafka/$1.jsa"; }
