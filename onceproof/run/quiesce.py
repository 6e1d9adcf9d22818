"""Bring a run to rest; only then may a missing record be called lost.

    1. Every input is processed: below the group's committed offset (lag 0), or as the scenario says (`done`).
    2. The workers are stopped and their proxied connections are closed, so that no late request can arrive.
    3. No transaction of this run is open at its coordinator, and LSO = HW on every judged partition and on the group's
       partition of __consumer_offsets. The deadline is max(transaction.timeout.ms) plus the clean-up interval, counted
       from the time when the last worker was alive.
    4. All replicas are in sync.

A step that does not succeed within its deadline is recorded as `stalled`; the run is still collected, and its verdict
is `unknown` at best. An LSO that stays below the high watermark although no coordinator knows a transaction is not a
stall: it is recorded as such, for `hung-transaction`.
"""

import time
from collections.abc import Callable
from pathlib import Path

from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import DeadlineError
from onceproof.harness.cluster import topology
from onceproof.harness.cluster.described import Partition
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.settled import lso_behind, not_in_sync
from onceproof.harness.record.events import Behind, Quiesced, Stalled
from onceproof.run import done

_CLEANUP_S = 5.0
_ISR_DEADLINE_S = 60.0


def quiesce(context: FaultContext, folder: Path, master: str) -> None:
    """Bring a healed run to rest, and record `stalled` events and `quiesced`. `folder` is the run folder.

    Raises the failure of the workers if there is one, and an error of the harness itself; a step that misses its
    deadline does not raise.
    """
    _or_stalled(context, lambda: done.wait(context, folder, master))
    context.workers.stop_workers()
    alive_until = time.monotonic()
    workers = range(context.plan.scenario.workload.workers)
    context.cluster.proxies.close_connections(
        link for worker in workers for link in topology.lane_links(topology.lane_of_worker(worker))
    )
    timeout_s = context.plan.scenario.workload.transaction_timeout_ms / 1000 + _CLEANUP_S
    _or_stalled(
        context, lambda: until("no open transaction", lambda: not _open_transactions(context), deadline_s=timeout_s)
    )
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


def _open_transactions(context: FaultContext) -> list[str]:
    """Return the transactional ids of this run whose transaction is open at its coordinator."""
    if "transaction-state" not in context.cluster.system.capabilities:
        return []
    ids = context.cluster.admin.transactional_ids(context.names.prefix)
    return [name for name, state in ids.items() if state not in ("Empty", "CompleteCommit", "CompleteAbort", "Dead")]


def _or_stalled(context: FaultContext, wait: Callable[[], object]) -> None:
    """Wait, and record `stalled` if the deadline passes."""
    try:
        wait()
    except DeadlineError as error:
        context.note(Stalled(reason=str(error)))
