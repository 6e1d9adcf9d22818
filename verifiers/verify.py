"""From a run's tables to its verdict. Needs no cluster; the same again gives the same.

Every check runs, whatever the others found. A check that raises gives `unknown: harness-error`, never `valid`; and so
does a folder that is not what was collected, of which nothing else is said.
"""

import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from onceproof.harness.artifacts import clients
from onceproof.harness.base.errors import BadInput
from onceproof.harness.judge import expectation, vacuity
from onceproof.harness.judge.expectation import RunOutcome
from onceproof.harness.model import plan, registry
from onceproof.harness.record import history, manifest
from onceproof.harness.record.events import (
    ClientFailed,
    FaultFailed,
    FaultInjected,
    HarnessFailed,
    Outcome,
    Quiesced,
    Ready,
    RunDescribed,
    Stalled,
    Started,
)
from onceproof.harness.record.history import Events
from onceproof.harness.record.results import CheckResult, Mode, Reason, Results, decide
from onceproof.verifiers.evidence.check import Check
from onceproof.verifiers.evidence.spark import let_go, session
from onceproof.verifiers.evidence.tables import Tables

_CHECKS_AT_ONCE = 3


def verify(folder: Path, *, master: str = "local[2]", look: Callable[[], None] | None = None) -> Results:
    """Judge a run's folder and write its results.json. `look` reads what is hidden from a read_committed reader, and is
    called at most once, when a finding asks for it. Raises BadInput when it is no run's folder, or has no tables.
    """
    if not (folder / "tables").is_dir():
        raise BadInput(f"{folder}: no tables/; the run ended before they were collected, or this is no run's folder")
    planned, events = plan.read(folder / "plan.json"), history.read(folder / "history.jsonl")
    damage = [Reason(kind="harness-error", says=f"damaged: {each}") for each in manifest.damage(folder)]
    checks: list[CheckResult] = []
    counts: dict[str, int] = {}
    mode: Mode = "full"
    if not damage:  # nothing is concluded from tables that are not what was collected
        tables = Tables(folder, session(master), planned, events, look=look)
        try:
            checks = in_threads(lambda check: _guarded(check, tables), all_checks(planned.scenario.checks))
            mode = "full" if tables.full else "ledger"
            try:
                counts = _counts(tables)
            except Exception as error:
                checks.append(_failed("counts", "", error))
        finally:
            with suppress(Exception):  # the session may have died; the checks then say so
                let_go(tables.spark)
    reasons = [*damage, *(reason for check in checks for reason in check.reasons)]
    run = events.first(RunDescribed)
    versions = {**(run.versions if run else {}), **_libraries(events)}
    reasons += vacuity.vacuous(planned, events) + _troubles(events) + _other_client(versions)
    findings = [finding for check in checks for finding in check.findings]
    word = decide(findings, reasons)
    came = RunOutcome(word=word, findings=findings, reasons=reasons, events=events, versions=versions)
    judged, bug = expectation.judge(planned.scenario, came), planned.scenario.bug
    results = Results(
        name=planned.scenario.name,
        seed=planned.seed,
        command=run.command if run else "onceproof",
        verdict=word,
        as_expected=judged.met,
        expectation=judged.says,
        findings=findings,
        reasons=reasons,
        checks=checks,
        counts=counts,
        versions=versions,
        mode=mode,
        issue=bug.issue if bug else "",
        result=judged.result,
    )
    results.write(folder / "results.json")
    return results


def all_checks(more: Sequence[str] = ()) -> list[Check]:
    """Every registered check, and those that a scenario names as FILE.py:NAME. Raises BadInput when one is no check."""
    names = [*registry.names("check"), *more]
    found = {name: registry.get("check", name) for name in names}
    for name, check in found.items():
        if not isinstance(check, Check):
            raise BadInput(f"check {name!r}: expected a Check; got {check!r:.80}")
    return list(found.values())


def in_threads(ask: Callable[[Check], CheckResult], checks: Sequence[Check]) -> list[CheckResult]:
    """What `ask` returns for each check, in their order. A few at once, since Spark plans a question on one core."""
    with ThreadPoolExecutor(_CHECKS_AT_ONCE) as threads:
        return list(threads.map(ask, checks))


def _guarded(check: Check, tables: Tables) -> CheckResult:
    try:
        return check.judge(tables)
    except Exception as error:  # whatever a check meets, the verdict must not be valid
        return _failed(check.name, check.claim, error)


def _failed(name: str, claim: str, error: Exception) -> CheckResult:
    # An exception of a JVM that has died cannot even be asked what it says; this does not raise then.
    told = "".join(traceback.format_exception_only(error)).splitlines()
    says = f"check {name} failed: {' '.join(told[:2])}"
    return CheckResult(name=name, claim=claim, reasons=[Reason(kind="harness-error", says=says[:400])])


def _troubles(events: Events) -> list[Reason]:
    """What the run itself recorded as going wrong."""
    reasons = [Reason(kind="stalled", says=each.reason) for each in events.of(Stalled)]
    reasons += [Reason(kind="harness-error", says=each.reason) for each in events.of(HarnessFailed)]
    reasons += [Reason(kind="harness-error", says=each.reason) for each in events.of(FaultFailed)]
    if events.first(Quiesced) is None:
        reasons.append(Reason(kind="harness-error", says="the run ended before it came to rest"))
    return reasons


_LIBRARY = "workers' client"


def _libraries(events: Events) -> dict[str, str]:
    """What the workers' own libraries say that they are."""
    told = {each.client for each in events.of(Ready) if each.client}
    return {_LIBRARY: ", ".join(sorted(told))} if told else {}


def _other_client(versions: Mapping[str, str]) -> list[Reason]:
    """A run that asked for a version of a client says nothing about another one."""
    asked, told = clients.version(versions.get("client", "")), versions.get(_LIBRARY, "")
    if not asked or not told or asked in told.split():
        return []
    return [Reason(kind="harness-error", says=f"the workers' client is {told}, and {asked} was asked for")]


def _counts(tables: Tables) -> dict[str, int]:
    events = tables.events
    outcomes = Counter(each.type for each in events.of(Outcome))
    fenced = {
        each.process
        for each in events.of(ClientFailed)
        if (each.fatal or each.call == "send-offsets") and _fencing(each.code)
    }
    restarts = [
        each for each in events.of(Started) if each.source.startswith("worker-") and (each.incarnation or 1) > 1
    ]
    return {
        "inputs": tables.sizes("inputs")["inputs"],
        "inputs_without_an_offset": tables.unplaced,
        "outputs": tables.facts["rows"]["outputs"],
        "transactions": sum(outcomes.values()),
        "committed": outcomes["ok"],
        "aborted": outcomes["fail"],
        "indeterminate": outcomes["info"],
        "fenced_workers": len(fenced),
        "worker_restarts": len(restarts),
        "faults": len(events.of(FaultInjected)),
    }


def _fencing(code: str) -> bool:
    return any(word in code for word in ("FENCED", "PRODUCER_EPOCH", "GENERATION", "MEMBER"))
