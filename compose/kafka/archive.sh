#!/bin/sh
# Runs one node for a moment, when the image is built, so that the JVM writes down the classes that it loads (as Apache's
# own image does, KIP-975). Starting a cluster, or a broker that was killed, then takes a third less of the machine.
# A JVM that cannot do it makes an image without: nothing else depends on it.
# shellcheck disable=SC2086  # $java and $logging are lists of options
set -u
# shellcheck source=java.sh
. /opt/kafka/java.sh
mkdir /tmp/one && cd /tmp/one || exit
cat >one.properties <<'SETTINGS'
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
listeners=LINK://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
listener.security.protocol.map=CONTROLLER:PLAINTEXT,LINK:PLAINTEXT
inter.broker.listener.name=LINK
controller.listener.names=CONTROLLER
log.dirs=/tmp/one/log
SETTINGS
$java -XX:ArchiveClassesAtExit=/opt/kafka/storage.jsa \
  kafka.tools.StorageTool format --cluster-id b25jZXByb29mMDAwMDAwMA --config one.properties >/dev/null 2>&1
$java -XX:ArchiveClassesAtExit=/opt/kafka/kafka.jsa $logging kafka.Kafka one.properties >said 2>&1 &
node=$!
left=120
until grep -q 'Kafka Server started' said || ! kill -0 $node 2>/dev/null || [ $left -eq 0 ]; do
  sleep 0.5
  left=$((left - 1))
done
kill -TERM $node 2>/dev/null
wait $node
rm -r /tmp/one
