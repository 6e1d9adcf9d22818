#!/bin/sh
# Writes server.properties, formats the data directory once, then becomes the broker or controller.
#
#   /etc/kafka/common.properties   settings that all nodes of a kind share (compose/kafka/*.properties)
#   KAFKA_NODE_ID, KAFKA_…         settings of this node: KAFKA_FOO_BAR is foo.bar, as in Apache's own image
#   /data/settings.properties      settings of the scenario
#   FEATURES                       features to format with, "transaction.version=2 group.version=1"
# shellcheck disable=SC2046,SC2086  # $java, $logging, $features and what `archived` prints are lists of options
set -eu
properties=/data/server.properties
{
  cat /etc/kafka/common.properties
  env | sed -n 's/^KAFKA_//p' | while IFS='=' read -r name value; do
    printf '%s=%s\n' "$(printf %s "$name" | tr 'A-Z_' 'a-z.')" "$value"
  done
  [ ! -e /data/settings.properties ] || cat /data/settings.properties
} >"$properties"

# shellcheck source=java.sh
. /opt/kafka/java.sh
if [ ! -e /data/log/meta.properties ]; then
  features=
  for feature in ${FEATURES:-}; do features="$features --feature $feature"; done
  $java $(archived storage) kafka.tools.StorageTool format --cluster-id "$CLUSTER_ID" --config "$properties" --ignore-formatted $features
fi
exec $java $(archived kafka) -Xms"$HEAP" -Xmx"$HEAP" -XX:+ExitOnOutOfMemoryError $logging kafka.Kafka "$properties"
