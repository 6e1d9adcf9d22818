"""A green run must have been able to be red: what must have happened, read from the history alone.

For each fault: it was injected; it had the effect it stands for (`Witness`); a transaction committed between injection
and heal (when it lasts), and one after the heal. And what the scenario names: so many transactions open when it struck,
so many inputs acknowledged at least.
(Whether the live observer saw anything, `verifiers/readers.py` asks.)
"""

from collections.abc import Sequence

from harness import registry
from harness.plan import Plan, PlannedFault
from harness.protocols import Event, Lasting, Witness
from harness.verdict import Reason

# A shorter fault need not have a commit under it.
LASTS_LONG_S = 3.0


def vacuous(plan: Plan, events: Sequence[Event]) -> list[Reason]:
    """Every reason for which this run shows less than it claims."""
    found = [problem for planned in plan.faults for problem in _problems(planned, plan, events)]
    if not any(event["event"] == "outcome" and event["type"] == "ok" for event in events):
        found.append("no worker ever committed")
    least = plan.scenario.workload.records
    for event in events:
        if event["event"] == "finished" and event["source"] == "generator" and event["acknowledged"] < least:
            found.append(f"of {least} inputs at least, {event['acknowledged']} were acknowledged: the load was less")
    return [Reason(kind="vacuous", says=says) for says in found]


def _problems(planned: PlannedFault, plan: Plan, events: Sequence[Event]) -> list[str]:
    mine = {event["event"]: event for event in events if event.get("fault") == planned.id}
    if "fault-injected" not in mine:
        ended = mine.get("fault-missed") or mine.get("fault-failed")
        return [f"fault {planned.id} never happened: {ended['reason'] if ended else 'the run ended before it'}"]
    problems = []
    fault = registry.fault(planned.name)
    if isinstance(fault, Witness):
        missing = fault.missing(planned, events)
        if missing:
            problems.append(f"fault {planned.id}: {missing}")
    if "fault-healed" not in mine:
        return [*problems, f"fault {planned.id} was never healed"]
    commits = [event["at"] for event in events if event["event"] == "outcome" and event["type"] == "ok"]
    injected, healed = mine["fault-injected"]["at"], mine["fault-healed"]["at"]
    # While the only worker is hit nobody can commit.
    alone = plan.scenario.workload.workers == 1 and str(mine.get("fault-target", {}).get("role")).startswith("worker-")
    wanted = plan.scenario.expect.commit_under_fault and not isinstance(fault, Lasting) and not alone
    lasting = wanted and planned.spec.lasts_s >= LASTS_LONG_S
    if lasting and not any(injected < at < healed for at in commits):
        problems.append(f"fault {planned.id}: no transaction committed while it lasted")
    if not any(at > healed for at in commits):
        problems.append(f"fault {planned.id}: no transaction committed after it was healed")
    open_wanted = plan.scenario.expect.open_transactions_at_fault
    if open_wanted:
        open_then = mine["fault-begins"]["open_transactions"]
        if open_then is None:
            problems.append(f"fault {planned.id}: the cluster did not say which transactions were open when it struck")
        elif len(open_then) < open_wanted:
            says = f"{len(open_then)} transactions open when it struck, {open_wanted} wanted"
            problems.append(f"fault {planned.id}: {says}")
    return problems
