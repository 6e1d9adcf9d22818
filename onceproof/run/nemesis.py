"""Run the faults of a plan: start each at its time or phase, end it, and record it in the history.

Each fault has a thread. The thread waits until the fault is due, records the open transactions, injects the fault, lets
a worker that stopped for it continue, waits until the fault is over, and undoes it. A fault that is never due leaves
`fault-missed` in the history, and the run is then `unknown: vacuous`.
"""

import threading
import time
from functools import partial

from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import DeadlineError
from onceproof.harness.cluster.admin import AdminError
from onceproof.harness.cluster.described import OPEN_STATES
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import SelfTimed
from onceproof.harness.context.fault import fault as fault_named
from onceproof.harness.judge.vacuity import must_commit_under
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.record.events import (
    AtPhase,
    FaultBegins,
    FaultFailed,
    FaultHealed,
    FaultInjected,
    FaultMissed,
    FaultNotDone,
    NoCommitUnderFault,
    Outcome,
)

_PHASE_DEADLINE_S = 90.0
_AFTER_DEADLINE_S = 600.0
_COMMIT_DEADLINE_S = 20.0


class Nemesis:
    """The faults of a run, one thread each."""

    def __init__(self, context: FaultContext) -> None:
        self._context = context
        self._threads = [
            threading.Thread(target=self._run, args=(fault,), name=f"fault {fault.id}", daemon=True)
            for fault in context.plan.faults
        ]
        self._started = 0.0

    def start(self) -> None:
        """Start the faults. The plan's times (`at_s`) count from this call."""
        self._started = time.monotonic()
        for thread in self._threads:
            thread.start()

    def wait(self, deadline_s: float) -> None:
        """Wait until every fault is healed.

        Raises DeadlineError after `deadline_s` seconds, and the failure of the workers as soon as there is one.
        """
        deadline = time.monotonic() + deadline_s
        for thread in self._threads:
            left_s = max(0.0, deadline - time.monotonic())
            ended = partial(lambda thread: not thread.is_alive(), thread)
            until(f"{thread.name} to end", ended, deadline_s=left_s, abort=self._context.workers.failures.check)

    def leave_out(self) -> None:
        """Record each fault as missed instead of injecting it, so that the run is vacuous."""
        for planned in self._context.plan.faults:
            self._context.note(FaultMissed(fault=planned.id, reason="left out by --no-faults"))

    def give_up(self) -> None:
        """End all waiting. A fault that is not due yet is recorded as missed; a fault that lasts is undone."""
        self._context.aborted.set()

    def _run(self, planned: PlannedFault[FaultSpec]) -> None:
        context = self._context
        try:
            self._wait_until_due(planned)
            self._inject_and_undo(planned)
        except DeadlineError as error:
            context.note(FaultMissed(fault=planned.id, reason=str(error)))
        except (Exception, SystemExit) as error:  # the run records it and continues to its end
            context.note(FaultFailed(fault=planned.id, reason=f"{type(error).__name__}: {error}"))
        finally:
            for moment, when in planned.spec.stops.items():
                context.workers.go(when.worker, planned.id + moment)

    def _wait_until_due(self, planned: PlannedFault[FaultSpec]) -> None:
        """Wait for the worker's phase, the end of another fault, or the time. Raises DeadlineError if none comes."""
        spec, context = planned.spec, self._context
        if spec.when is not None:
            context.wait(
                f"worker-{spec.when.worker} to reach {spec.when.phase} of its transaction {spec.when.count}",
                AtPhase,
                lambda event: event.fault == planned.id,
                deadline_s=_PHASE_DEADLINE_S + context.plan.lasts_s,
            )
        elif spec.after is not None:
            before = context.plan.faults[spec.after].id
            ended = context.wait(
                f"fault {before} to be healed",
                (FaultHealed, FaultNotDone),
                lambda event: event.fault == before,
                deadline_s=_AFTER_DEADLINE_S,
            )
            if not isinstance(ended, FaultHealed):
                raise DeadlineError(f"fault {before}, which must come first, did not happen")
        elif spec.at_s is not None and context.aborted.wait(max(0.0, self._started + spec.at_s - time.monotonic())):
            raise DeadlineError(f"the run ended before the fault's time, {spec.at_s:g} s")

    def _inject_and_undo(self, planned: PlannedFault[FaultSpec]) -> None:
        context, fault = self._context, fault_named(planned.name)
        before = self._open_transactions()
        context.note(FaultBegins(fault=planned.id, name=planned.name, open_transactions=before))
        undo = fault.inject(context, planned)
        try:
            context.note(FaultInjected(fault=planned.id, name=planned.name))
            if planned.spec.when is not None:
                context.workers.go(planned.spec.when.worker, planned.id)
            if isinstance(fault, SelfTimed):
                fault.hold(context, planned, undo)
            else:
                self._wait_until_over(planned)
        finally:
            undo()
            context.note(FaultHealed(fault=planned.id, name=planned.name))

    def _wait_until_over(self, planned: PlannedFault[FaultSpec]) -> None:
        """Wait for `lasts_s`, and then until a transaction is committed while the fault lasts.

        A pipeline that recovers only after the heal would show nothing about the time before it. A client gives up a
        call that never returns after the time-out of its transaction, so this waits at most twenty seconds longer than
        that. If there is no commit, the vacuity check reports it.
        """
        context, work = self._context, self._context.plan.scenario.workload
        since = len(context.history)
        context.aborted.wait(planned.spec.lasts_s)
        if not must_commit_under(planned, context.plan, context.history.events()):
            return
        try:
            context.wait(
                "a commit while the fault lasts",
                Outcome,
                lambda event: event.type == "ok",
                deadline_s=_COMMIT_DEADLINE_S + work.transaction_timeout_ms / 1000,
                since=since,
            )
        except DeadlineError:
            context.note(NoCommitUnderFault(fault=planned.id))

    def _open_transactions(self) -> list[str] | None:
        """Return the transactional ids of this run with an open transaction; None if the cluster does not answer."""
        try:
            ids = self._context.cluster.admin.transactional_ids(self._context.names.prefix)
        except AdminError:
            return None
        return sorted(name for name, state in ids.items() if state in OPEN_STATES)
