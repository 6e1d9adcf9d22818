"""Whether a green run could have been red: what must have happened, read from the history alone.

For each fault: it was injected; it had the effect that it stands for (`Witness`); a transaction was committed between
injection and heal (when it lasts), and one after the heal. And what the scenario asks for: that many transactions open
when the fault struck, that many inputs acknowledged. (Whether the live observer saw anything is asked by
`verifiers/readers.py`.)
"""

from onceproof.harness.context.fault import SelfTimed, Witness, fault
from onceproof.harness.model.plan import Plan, PlannedFault
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.record.events import (
    FaultBegins,
    FaultHealed,
    FaultInjected,
    FaultNotDone,
    FaultTarget,
    Finished,
    Outcome,
)
from onceproof.harness.record.history import Events
from onceproof.harness.record.results import Reason

# A shorter fault need not have a commit under it.
LASTS_LONG_S = 3.0


def vacuous(plan: Plan, events: Events) -> list[Reason]:
    """Every reason for which this run shows less than it claims."""
    found = [problem for planned in plan.faults for problem in _problems(planned, plan, events)]
    if events.first(Outcome, type="ok") is None:
        found.append("no worker ever committed")
    least = plan.scenario.workload.records
    for each in events.of(Finished, source="generator"):
        if (each.acknowledged or 0) < least:
            found.append(f"only {each.acknowledged} of at least {least} inputs were acknowledged")
    return [Reason(kind="vacuous", says=says) for says in found]


def _problems(planned: PlannedFault[FaultSpec], plan: Plan, events: Events) -> list[str]:
    injected, healed = (events.first(kind, fault=planned.id) for kind in (FaultInjected, FaultHealed))
    if injected is None:
        ended = events.first(FaultNotDone, fault=planned.id)
        return [f"fault {planned.id} never happened: {ended.reason if ended else 'the run ended before it'}"]
    problems = []
    kind = fault(planned.name)
    missing = kind.missing(planned, events) if isinstance(kind, Witness) else None
    if missing:
        problems.append(missing)
    if healed is None:
        return [f"fault {planned.id}: {says}" for says in [*problems, "it was never healed"]]
    commits = [each.at for each in events.of(Outcome, type="ok")]
    if _must_commit_under(planned, plan, events) and not any(injected.at < at < healed.at for at in commits):
        problems.append("no transaction was committed while it lasted")
    if not any(at > healed.at for at in commits):
        problems.append("no transaction was committed after it was healed")
    problems += _too_few_open(planned, plan.scenario.expect.open_transactions_at_fault, events)
    return [f"fault {planned.id}: {says}" for says in problems]


def _must_commit_under(planned: PlannedFault[FaultSpec], plan: Plan, events: Events) -> bool:
    if not plan.scenario.expect.commit_under_fault or isinstance(fault(planned.name), SelfTimed):
        return False
    target = events.first(FaultTarget, fault=planned.id)
    # While the only worker is hit nobody can commit.
    alone = plan.scenario.workload.workers == 1 and target is not None and target.role.startswith("worker-")
    return planned.spec.lasts_s >= LASTS_LONG_S and not alone


def _too_few_open(planned: PlannedFault[FaultSpec], wanted: int, events: Events) -> list[str]:
    if not wanted:
        return []
    found = events.the(FaultBegins, fault=planned.id).open_transactions
    if found is None:
        return ["the cluster did not say which transactions were open when it struck"]
    return [f"{len(found)} transactions were open when it struck, {wanted} wanted"] if len(found) < wanted else []
