"""Queries that show whether a run has come to rest: consumer lag, last stable offsets and in-sync replicas."""

from onceproof.harness.cluster import topology
from onceproof.harness.cluster.described import Partition
from onceproof.harness.cluster.remaining import remaining
from onceproof.harness.context.context import FaultContext


def judged(context: FaultContext) -> list[Partition]:
    """Return all partitions of the run's topics, which are the judged partitions."""
    count = context.plan.scenario.workload.partitions
    return [(topic, partition) for topic in context.names.topics.values() for partition in range(count)]


def lag(context: FaultContext, only: str | None = None) -> int:
    """Return the sum of the consumer lag of all groups of workers, or of those that read the topic `only`, in offsets.

    A partition without a committed offset counts from its log start offset. A partition counts only if a consumer would
    still receive a record of it, since a topic that is written in transactions ends with markers.
    """
    admin, count = context.cluster.admin, context.plan.scenario.workload.partitions
    behind: dict[Partition, tuple[int, int]] = {}
    for group, topic in context.names.read:
        if only not in (None, topic):
            continue
        of_app = context.plan.scenario.app is not None
        partitions = _read_by(context, group) if of_app else [(topic, partition) for partition in range(count)]
        ends = admin.offsets(partitions, "latest", "read_uncommitted")
        starts = admin.offsets(partitions, "earliest", "read_uncommitted")
        committed = admin.group_offsets(group)
        positions = {each: max(starts[each], committed.get(each, (0, ""))[0]) for each in partitions}
        behind |= {each: (positions[each], ends[each]) for each in partitions if positions[each] < ends[each]}
    remains = remaining(context.cluster.bootstrap(topology.OBSERVER_LANE), behind) if behind else set()
    return sum(end - position for each, (position, end) in behind.items() if each in remains)


def _read_by(context: FaultContext, group: str) -> list[Partition]:
    """Return the partitions of the input, and of other topics of the run of which an application's group has offsets.

    An application may read topics that it writes itself, as those through which Kafka Streams repartitions.
    """
    admin, names = context.cluster.admin, context.names
    told = {topic for topic, _ in admin.group_offsets(group) if topic.startswith(f"{names.prefix}-")}
    return [(topic, partition) for topic in sorted({names.input, *told}) for partition in admin.partitions(topic)]


def lso_behind(context: FaultContext) -> dict[Partition, tuple[int, int]]:
    """Return the partitions whose last stable offset (LSO) is not their high watermark, with both: (LSO, HW).

    The judged partitions are queried, and the partitions of `__consumer_offsets` of the workers' groups.
    """
    admin = context.cluster.admin
    partitions = [*judged(context), *map(admin.offsets_partition, context.names.groups)]
    stable = admin.offsets(partitions, "latest", "read_committed")
    high = admin.offsets(partitions, "latest", "read_uncommitted")
    return {each: (stable[each], high[each]) for each in partitions if stable[each] != high[each]}


def not_in_sync(context: FaultContext) -> list[str]:
    """Return the partitions of the run's and the internal topics that have no leader or a replica out of sync."""
    internal = {"__consumer_offsets", "__transaction_state"} & context.cluster.admin.topics()
    topics = (*context.names.topics.values(), *sorted(internal))
    return [
        f"{topic}/{partition}"
        for topic in topics
        for partition, state in context.cluster.admin.partitions(topic).items()
        if state.leader is None or set(state.isr) != set(state.replicas)
    ]
