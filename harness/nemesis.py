"""The nemesis: starts each fault at its time or phase, ends it, and writes down what it met.

Each fault has a thread. It waits for its moment; counts the transactions that are open; injects; lets a worker that
stopped for it go on; waits until the fault is over; undoes it. What does not come leaves `fault-missed` in the
history, and the run is then `unknown: vacuous`.
"""

import threading
import time

from harness import registry
from harness.admin import OPEN_STATES, AdminError
from harness.errors import DeadlineError
from harness.field import Field
from harness.plan import PlannedFault
from harness.protocols import Lasting
from harness.vacuity import LASTS_LONG_S

_PHASE_DEADLINE_S = 90.0
_AFTER_DEADLINE_S = 600.0
_COMMIT_DEADLINE_S = 20.0


class Nemesis:
    def __init__(self, field: Field) -> None:
        self._field = field
        self._threads = [
            threading.Thread(target=self._run, args=(fault,), name=f"fault {fault.id}", daemon=True)
            for fault in field.plan.faults
        ]
        self._started = 0.0

    def start(self) -> None:
        """The plan's clock starts now: `at_s` counts from here."""
        self._started = time.monotonic()
        for thread in self._threads:
            thread.start()

    def wait(self, deadline_s: float) -> None:
        """Until every fault is healed. Raises DeadlineError."""
        deadline = time.monotonic() + deadline_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                raise DeadlineError(f"waited {deadline_s:g} s for {thread.name} to end")

    def leave_out(self) -> None:
        """Do nothing, and say so: what a run shows without its faults must be nothing."""
        for planned in self._field.plan.faults:
            self._field.note("fault-missed", fault=planned.id, reason="left out by --no-faults")

    def give_up(self) -> None:
        self._field.aborted.set()

    def _run(self, planned: PlannedFault) -> None:
        field = self._field
        try:
            self._await_moment(planned)
            self._strike(planned)
        except DeadlineError as error:
            field.note("fault-missed", fault=planned.id, reason=str(error))
        except Exception as error:  # whatever it is, the run must say so and go on to its end
            field.note("fault-failed", fault=planned.id, reason=f"{type(error).__name__}: {error}")
        finally:
            for moment, when in planned.spec.stops.items():
                field.crew.go(when.worker, planned.id + moment)

    def _await_moment(self, planned: PlannedFault) -> None:
        spec, field = planned.spec, self._field
        if spec.when is not None:
            field.wait(
                f"worker-{spec.when.worker} at {spec.when.phase} of its transaction {spec.when.count}",
                lambda event: event["event"] == "at-phase" and event["fault"] == planned.id,
                deadline_s=_PHASE_DEADLINE_S,
            )
        elif spec.after is not None:
            before = field.plan.faults[spec.after].id
            ended = field.wait(
                f"fault {before} to be healed",
                lambda e: e["event"] in ("fault-healed", "fault-missed", "fault-failed") and e["fault"] == before,
                deadline_s=_AFTER_DEADLINE_S,
            )
            if ended["event"] != "fault-healed":
                raise DeadlineError(f"fault {before}, which comes first, did not happen")
        elif spec.at_s is not None and field.aborted.wait(max(0.0, self._started + spec.at_s - time.monotonic())):
            raise DeadlineError(f"the run ended before {spec.at_s:g} s")

    def _strike(self, planned: PlannedFault) -> None:
        field, fault = self._field, registry.fault(planned.name)
        before = self._open_transactions()
        field.note("fault-begins", fault=planned.id, name=planned.name, open_transactions=before)
        undo = fault.inject(field, planned)
        try:
            field.note("fault-injected", fault=planned.id, name=planned.name)
            if planned.spec.when is not None:
                field.crew.go(planned.spec.when.worker, planned.id)
            if isinstance(fault, Lasting):
                fault.hold(field, planned)
            else:
                self._last(planned)
        finally:
            undo()
            field.note("fault-healed", fault=planned.id, name=planned.name)

    def _last(self, planned: PlannedFault) -> None:
        """`lasts_s` at least, and until somebody has committed under the fault: a pipeline that recovers only after the
        heal shows nothing about the time before. A client's call that never returns is given up after the time-out of
        its transaction; so it is at most that and twenty seconds longer, and vacuity then says what was missing."""
        field, work = self._field, self._field.plan.scenario.workload
        since = len(field.history.events())
        field.aborted.wait(planned.spec.lasts_s)
        wanted = field.plan.scenario.expect.commit_under_fault and work.workers > 1
        if not wanted or planned.spec.lasts_s < LASTS_LONG_S:
            return
        try:
            field.wait(
                "a commit under the fault", lambda e: e["event"] == "outcome" and e["type"] == "ok",
                deadline_s=_COMMIT_DEADLINE_S + work.transaction_timeout_ms / 1000, since=since,
            )  # fmt: skip
        except DeadlineError:
            field.note("no-commit-under-fault", fault=planned.id)

    def _open_transactions(self) -> list[str] | None:
        """Transactional ids of this run with an open transaction; None when the cluster does not say."""
        try:
            ids = self._field.cluster.admin.transactional_ids(self._field.names.prefix)
        except AdminError:
            return None
        return sorted(name for name, state in ids.items() if state in OPEN_STATES)
