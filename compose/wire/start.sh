#!/bin/sh
# start.sh LINKS.json: the request proxy. `$java` ends with the class path.
# shellcheck source=../kafka/java.sh
. /opt/kafka/java.sh
# shellcheck disable=SC2086,SC2154  # several words, from java.sh
exec $java:/opt/wire/wire.jar -XX:TieredStopAtLevel=4 -Xmx384m -Xss512k onceproof.wire.Proxy "$1"
