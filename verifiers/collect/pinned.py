"""The ends of the logs and their replicas, as they are when the topics are read."""

from typing import Any

from onceproof.harness.cluster import topology
from onceproof.harness.cluster.admin import Admin
from onceproof.harness.cluster.described import Partition


def pin(admin: Admin, partitions: list[Partition]) -> list[dict[str, Any]]:
    """Return start, end (the LSO), high watermark, leader, replicas and ISR of each partition, as they are now.

    Raises AdminError when the cluster does not answer.
    """
    starts = admin.offsets(partitions, "earliest", "read_uncommitted")
    high = admin.offsets(partitions, "latest", "read_uncommitted")
    stable = admin.offsets(partitions, "latest", "read_committed")
    of_topic = {topic: admin.partitions(topic) for topic in {topic for topic, _ in partitions}}
    return [
        {
            "topic": topic,
            "partition": partition,
            "start": starts[topic, partition],
            "end": stable[topic, partition],
            "high_watermark": high[topic, partition],
            "leader": _leader(of_topic[topic][partition].leader),
            "replicas": sorted(map(topology.node_of, of_topic[topic][partition].replicas)),
            "isr": sorted(map(topology.node_of, of_topic[topic][partition].isr)),
        }
        for topic, partition in partitions
    ]


def _leader(node: int | None) -> str | None:
    return None if node is None else topology.node_of(node)
