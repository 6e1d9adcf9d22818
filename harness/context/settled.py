"""Questions to a cluster whose answer says whether a run has come to rest: lag, stable offsets, replicas."""

from onceproof.harness.cluster.admin import Partition
from onceproof.harness.context.context import FaultContext


def judged(context: FaultContext) -> list[Partition]:
    """Every partition of the run's topics."""
    count = context.plan.scenario.workload.partitions
    return [(topic, partition) for topic in context.names.topics.values() for partition in range(count)]


def lag(context: FaultContext) -> int:
    """Offsets that are not below their group's committed position; a partition without one counts from its start. In a
    topic between, whose last offset is a marker, that marker alone is no lag."""
    admin, count, behind = context.cluster.admin, context.plan.scenario.workload.partitions, 0
    for group, topic in context.names.read:
        partitions = [(topic, partition) for partition in range(count)]
        ends = admin.offsets(partitions, "latest", "read_uncommitted")
        starts = admin.offsets(partitions, "earliest", "read_uncommitted")
        positions = admin.group_offsets(group)
        left = (ends[each] - max(starts[each], positions.get(each, (0, ""))[0]) for each in partitions)
        behind += sum(max(0, each if topic == context.names.input else each - 1) for each in left)
    return behind


def lso_behind(context: FaultContext) -> dict[Partition, tuple[int, int]]:
    """Partitions whose last stable offset is below the high watermark → (LSO, HW)."""
    admin = context.cluster.admin
    partitions = [*judged(context), *map(admin.offsets_partition, context.names.groups)]
    stable = admin.offsets(partitions, "latest", "read_committed")
    high = admin.offsets(partitions, "latest", "read_uncommitted")
    return {each: (stable[each], high[each]) for each in partitions if stable[each] != high[each]}


def not_in_sync(context: FaultContext) -> list[str]:
    """Partitions of the run's topics, and of the internal ones, that have no leader or a replica out of sync."""
    internal = {"__consumer_offsets", "__transaction_state"} & context.cluster.admin.topics()
    topics = (*context.names.topics.values(), *sorted(internal))
    return [
        f"{topic}/{partition}"
        for topic in topics
        for partition, state in context.cluster.admin.partitions(topic).items()
        if state.leader is None or set(state.isr) != set(state.replicas)
    ]
