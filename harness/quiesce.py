"""Coming to rest: only then may absence be called loss.

    1. every input is below the group's committed position (lag 0)
    2. workers stopped, their proxied connections closed: no late request can still arrive
    3. no transaction of this run open at its coordinator, and LSO = HW on every judged partition and on the group's
       partition of __consumer_offsets; given until max(transaction.timeout.ms) + the clean-up interval have passed
       since the last worker was alive
    4. in-sync replicas complete

What does not come within its deadline is recorded as `stalled`; the run goes on to be collected, and is at best
`unknown`. An LSO that stays behind although no coordinator knows a transaction is not a stall: it is what
`hung-transaction` looks for, and is recorded as such.
"""

import time
from collections.abc import Callable

from harness import topology
from harness.admin import Partition
from harness.errors import DeadlineError
from harness.field import Field
from harness.wait import until

_LAG_DEADLINE_S = 120.0
_CLEANUP_S = 5.0
_ISR_DEADLINE_S = 60.0


def quiesce(field: Field) -> None:
    """Bring a healed run to rest. Records `stalled` events and `quiesced`; raises only if the harness itself fails."""
    _or_stalled(field, lambda: until("lag 0", lambda: lag(field) == 0, deadline_s=_LAG_DEADLINE_S))
    field.crew.stop_workers()
    alive_until = time.monotonic()
    workers = range(field.plan.scenario.workload.workers)
    field.cluster.proxies.close_connections(
        link for worker in workers for link in topology.lane_links(topology.lane_of_worker(worker))
    )
    timeout_s = field.plan.scenario.workload.transaction_timeout_ms / 1000 + _CLEANUP_S
    _or_stalled(field, lambda: until("no open transaction", lambda: not _open(field), deadline_s=timeout_s))
    left_s = max(1.0, alive_until + timeout_s - time.monotonic())
    behind: dict[Partition, tuple[int, int]] = {}
    try:
        until("LSO = HW on every judged partition", lambda: not lso_behind(field), deadline_s=left_s)
    except DeadlineError:
        behind = lso_behind(field)
    _or_stalled(field, lambda: until("full ISR", lambda: not not_in_sync(field), deadline_s=_ISR_DEADLINE_S))
    field.crew.stop_observers()
    field.note(
        "quiesced",
        lso_behind=[{"topic": t, "partition": p, "lso": lso, "hw": hw} for (t, p), (lso, hw) in behind.items()],
    )


def judged(field: Field) -> list[Partition]:
    """Every partition of the run's topics."""
    count = field.plan.scenario.workload.partitions
    return [(topic, partition) for topic in field.names.topics.values() for partition in range(count)]


def lag(field: Field) -> int:
    """Offsets that are not below their group's committed position; a partition without one counts from its start. In a
    topic between, whose last offset is a marker, that marker alone is no lag."""
    admin, count, behind = field.cluster.admin, field.plan.scenario.workload.partitions, 0
    for group, topic in field.names.read:
        partitions = [(topic, partition) for partition in range(count)]
        ends = admin.offsets(partitions, "latest", "read_uncommitted")
        starts = admin.offsets(partitions, "earliest", "read_uncommitted")
        positions = admin.group_offsets(group)
        left = (ends[each] - max(starts[each], positions.get(each, (0, ""))[0]) for each in partitions)
        behind += sum(max(0, each if topic == field.names.input else each - 1) for each in left)
    return behind


def lso_behind(field: Field) -> dict[Partition, tuple[int, int]]:
    """Partitions whose last stable offset is below the high watermark → (LSO, HW)."""
    admin = field.cluster.admin
    partitions = [*judged(field), *map(admin.offsets_partition, field.names.groups)]
    stable = admin.offsets(partitions, "latest", "read_committed")
    high = admin.offsets(partitions, "latest", "read_uncommitted")
    return {each: (stable[each], high[each]) for each in partitions if stable[each] != high[each]}


def _open(field: Field) -> list[str]:
    ids = field.cluster.admin.transactional_ids(field.names.prefix)
    return [name for name, state in ids.items() if state not in ("Empty", "CompleteCommit", "CompleteAbort", "Dead")]


def not_in_sync(field: Field) -> list[str]:
    """Partitions of the run's topics, and of the internal ones, that have no leader or a replica out of sync."""
    internal = {"__consumer_offsets", "__transaction_state"} & field.cluster.admin.topics()
    topics = (*field.names.topics.values(), *sorted(internal))
    return [
        f"{topic}/{partition}"
        for topic in topics
        for partition, state in field.cluster.admin.partitions(topic).items()
        if state.leader is None or set(state.isr) != set(state.replicas)
    ]


def _or_stalled(field: Field, wait: Callable[[], object]) -> None:
    try:
        wait()
    except DeadlineError as error:
        field.note("stalled", reason=str(error))
