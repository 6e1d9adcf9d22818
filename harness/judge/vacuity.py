"""Decides from the history whether a run is vacuous: whether it could not have shown what it claims.

Each fault must have been injected, must have had its effect (`Witness`), and must have been healed. A transaction must
have been committed between injection and heal, if the fault lasts long enough, and another one after the heal. The
scenario may require a number of transactions that are open at each injection, and it requires a number of acknowledged
inputs. (`verifiers/readers.py` checks that the live observer read records.)
"""

from onceproof.harness.context.fault import SelfTimed, Witness, fault
from onceproof.harness.model.plan import Plan, PlannedFault
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.record.events import (
    Exited,
    FaultBegins,
    FaultHealed,
    FaultInjected,
    FaultMissed,
    FaultNotDone,
    FaultTarget,
    FaultWitnessed,
    Finished,
    Outcome,
    Started,
)
from onceproof.harness.record.history import Events
from onceproof.harness.record.results import Reason

# A fault that lasts at least this long must have a commit between injection and heal.
_LASTS_LONG_S = 3.0


def witnessed(plan: Plan, events: Events) -> list[FaultWitnessed]:
    """Ask the code of each fault by file whether it had its effect, for the history of a run at its end.

    Faults by entry point are asked whenever the run is judged.
    """
    found = []
    for planned in (each for each in plan.faults if ":" in each.name):
        kind = fault(planned.name)
        try:
            missing = kind.missing(planned, events) if isinstance(kind, Witness) else None
        except (Exception, SystemExit) as error:  # code of the user
            missing = f"{planned.name} cannot say whether it had its effect: {type(error).__name__}: {error}"[:300]
        found.append(FaultWitnessed(fault=planned.id, missing=missing, self_timed=isinstance(kind, SelfTimed)))
    return found


def vacuous(plan: Plan, events: Events) -> list[Reason]:
    """Return every reason for which the run is vacuous; none if it is not."""
    found = [problem for planned in plan.faults for problem in _problems(planned, plan, events)]
    if events.first(Outcome, type="ok") is None:
        found.append("no worker ever committed")
    least = plan.scenario.workload.records
    for each in events.of(Finished, source="generator"):
        if (each.acknowledged or 0) < least:
            found.append(f"only {each.acknowledged} of at least {least} inputs were acknowledged")
        if plan.scenario.load.aborted and not each.bait:
            found.append("no input was aborted, although the scenario asks for bait")
    return [Reason(kind="vacuous", says=says) for says in found]


def _problems(planned: PlannedFault[FaultSpec], plan: Plan, events: Events) -> list[str]:
    injected, healed = (events.first(kind, fault=planned.id) for kind in (FaultInjected, FaultHealed))
    if injected is None:
        ended = events.first(FaultNotDone, fault=planned.id)
        return [f"fault {planned.id} never happened: {ended.reason if ended else 'the run ended before it'}"]
    problems = []
    missing = _missing(planned, events)
    if missing:
        problems.append(missing)
    elif cut_short := events.first(FaultMissed, fault=planned.id):
        problems.append(f"it did not take its course: {cut_short.reason}")
    if healed is None:
        return [f"fault {planned.id}: {says}" for says in [*problems, "it was never healed"]]
    commits = [each.at for each in events.of(Outcome, type="ok")]
    if must_commit_under(planned, plan, events) and not any(injected.at < at < healed.at for at in commits):
        problems.append("no transaction was committed while it lasted")
    if not any(at > healed.at for at in commits):
        problems.append("no transaction was committed after it was healed")
    problems += _not_running(planned, events)
    if plan.scenario.app is not None:
        problems += _idle(planned, injected.at, events)
    problems += _too_few_open(planned, plan.scenario.expect.open_transactions_at_fault, events)
    return [f"fault {planned.id}: {says}" for says in problems]


def _worker_hit(planned: PlannedFault[FaultSpec], events: Events) -> str:
    """Return the worker that a fault was aimed at, as `worker-0`; empty if it was aimed at none."""
    target = events.first(FaultTarget, fault=planned.id)
    return target.role if target is not None and target.role.startswith("worker-") else ""


def _not_running(planned: PlannedFault[FaultSpec], events: Events) -> list[str]:
    """Return a message if the fault was aimed at a worker that did not run, such as one that was killed before."""
    worker, begins = _worker_hit(planned, events), events.first(FaultBegins, fault=planned.id)
    if not worker or begins is None:
        return []
    last = [each for kind in (Started, Exited) for each in events.of(kind, source=worker) if each.at < begins.at]
    if isinstance(max(last, key=lambda each: each.at, default=None), Exited):
        return [f"{worker} did not run when it was injected"]
    return []


def _idle(planned: PlannedFault[FaultSpec], injected: float, events: Events) -> list[str]:
    """Return a message if the fault hit an instance of an application that had not committed anything before.

    It may still have been joining its group, or restoring its state, also after it was started again.
    """
    worker = _worker_hit(planned, events)
    if not worker:
        return []
    before = [each for each in events.of(Outcome, source=worker, type="ok") if each.at < injected]
    if before and _newest(worker, injected, events) in (None, before[-1].incarnation):
        return []
    return [f"{worker} had not committed any transaction before it"]


def _newest(role: str, at: float, events: Events) -> int | None:
    started = [each.incarnation for each in events.of(Started, source=role) if each.at < at]
    return started[-1] if started else None


def _missing(planned: PlannedFault[FaultSpec], events: Events) -> str | None:
    """Return the effect of a fault that the history does not show, in words; None if it shows it."""
    if ":" not in planned.name:
        kind = fault(planned.name)
        try:
            return kind.missing(planned, events) if isinstance(kind, Witness) else None
        except LookupError as error:  # an event is missing that the fault has always written
            return str(error)
    told = events.first(FaultWitnessed, fault=planned.id)
    return told.missing if told else f"the history does not say whether {planned.name} had its effect"


def _self_timed(planned: PlannedFault[FaultSpec], events: Events) -> bool:
    if ":" not in planned.name:
        return isinstance(fault(planned.name), SelfTimed)
    told = events.first(FaultWitnessed, fault=planned.id)
    return told is not None and told.self_timed


def must_commit_under(planned: PlannedFault[FaultSpec], plan: Plan, events: Events) -> bool:
    """Return whether a transaction must be committed between the injection of a fault and its heal."""
    if not plan.scenario.expect.commit_under_fault or _self_timed(planned, events):
        return False
    target = events.first(FaultTarget, fault=planned.id)
    role = "" if target is None else target.role
    # No worker can commit while a fault affects the only one, or the database to which all of them write.
    alone = role == "database" or (plan.scenario.workload.workers == 1 and role.startswith("worker-"))
    return planned.spec.lasts_s >= _LASTS_LONG_S and not alone


def _too_few_open(planned: PlannedFault[FaultSpec], wanted: int, events: Events) -> list[str]:
    if not wanted:
        return []
    begins = events.first(FaultBegins, fault=planned.id)
    found = begins.open_transactions if begins else None
    if found is None:
        return ["the cluster did not report the open transactions when it was injected"]
    if len(found) < wanted:
        return [f"only {len(found)} of at least {wanted} transactions were open when it was injected"]
    return []
