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

from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import DeadlineError
from onceproof.harness.cluster import topology
from onceproof.harness.cluster.admin import Partition
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.settled import lag, lso_behind, not_in_sync
from onceproof.harness.record.events import Behind, Quiesced, Stalled

_LAG_DEADLINE_S = 120.0
_CLEANUP_S = 5.0
_ISR_DEADLINE_S = 60.0


def quiesce(context: FaultContext) -> None:
    """Bring a healed run to rest. Records `stalled` events and `quiesced`; raises only if the harness itself fails."""
    _or_stalled(context, lambda: until("lag 0", lambda: lag(context) == 0, deadline_s=_LAG_DEADLINE_S))
    context.workers.stop_workers()
    alive_until = time.monotonic()
    workers = range(context.plan.scenario.workload.workers)
    context.cluster.proxies.close_connections(
        link for worker in workers for link in topology.lane_links(topology.lane_of_worker(worker))
    )
    timeout_s = context.plan.scenario.workload.transaction_timeout_ms / 1000 + _CLEANUP_S
    _or_stalled(context, lambda: until("no open transaction", lambda: not _open(context), deadline_s=timeout_s))
    left_s = max(1.0, alive_until + timeout_s - time.monotonic())
    behind: dict[Partition, tuple[int, int]] = {}
    try:
        until("LSO = HW on every judged partition", lambda: not lso_behind(context), deadline_s=left_s)
    except DeadlineError:
        behind = lso_behind(context)
    _or_stalled(context, lambda: until("full ISR", lambda: not not_in_sync(context), deadline_s=_ISR_DEADLINE_S))
    context.workers.stop_observers()
    stays = [Behind(topic=t, partition=p, lso=lso, hw=hw) for (t, p), (lso, hw) in behind.items()]
    context.note(Quiesced(lso_behind=stays))


def _open(context: FaultContext) -> list[str]:
    if "transaction-state" not in context.cluster.system.capabilities:
        return []
    ids = context.cluster.admin.transactional_ids(context.names.prefix)
    return [name for name, state in ids.items() if state not in ("Empty", "CompleteCommit", "CompleteAbort", "Dead")]


def _or_stalled(context: FaultContext, wait: Callable[[], object]) -> None:
    try:
        wait()
    except DeadlineError as error:
        context.note(Stalled(reason=str(error)))
