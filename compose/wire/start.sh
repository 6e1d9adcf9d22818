#!/bin/sh
# start.sh LINKS.json: the request proxy. `$java` ends with the class path.
. /opt/kafka/java.sh
# shellcheck disable=SC2086,SC2154  # several words, from java.sh
exec $java:/opt/wire/wire.jar -Xmx384m -Xss512k onceproof.wire.Proxy "$1"
