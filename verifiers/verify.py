"""From a run's tables to its verdict. Needs no cluster; the same again gives the same.

Every check runs, whatever the others found. A check that raises gives `unknown: harness-error`, never `valid`; and so
does a folder that is not what was collected, of which nothing else is said.
"""

import shlex
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness import clients, expectation, history, plan, registry, vacuity, verdict
from harness.errors import BadInput
from harness.expectation import Outcome
from harness.protocols import Event
from harness.verdict import CheckResult, Mode, Reason, ReasonKind, Results
from verifiers import manifest
from verifiers.spark import let_go, session
from verifiers.tables import Tables

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
            checks = in_threads(lambda check: _guarded(check, tables), registry.checks())
            mode = "full" if tables.full else "ledger"
            try:
                counts = _counts(tables)
            except Exception as error:
                checks.append(_failed("counts", error))
        finally:
            with suppress(Exception):  # the session may have died; the checks then say so
                let_go(tables.spark)
    reasons = [*damage, *(reason for check in checks for reason in check.reasons)]
    run = next((event for event in events if event["event"] == "run"), {})
    versions = {**run.get("versions", {}), **_libraries(events)}
    reasons += vacuity.vacuous(planned, events) + _troubles(events) + _other_client(versions)
    findings = [finding for check in checks for finding in check.findings]
    word = verdict.decide(findings, reasons)
    came = Outcome(word=word, findings=findings, reasons=reasons, events=events, versions=versions)
    judged, bug = expectation.judge(planned.scenario, came), planned.scenario.bug
    results = Results(
        name=planned.scenario.name, seed=planned.seed, command=run.get("command", shlex.join(["onceproof"])),
        verdict=word, as_expected=judged.met, expectation=judged.says, findings=findings, reasons=reasons,
        checks=checks, counts=counts, versions=versions, mode=mode, issue=bug.issue if bug else "",
        result=judged.result,
    )  # fmt: skip
    results.write(folder / "results.json")
    return results


def in_threads(ask: Callable[[Any], CheckResult], checks: Sequence[Any]) -> list[CheckResult]:
    """What `ask` returns for each check, in their order. A few at once, since Spark plans a question on one core."""
    with ThreadPoolExecutor(_CHECKS_AT_ONCE) as threads:
        return list(threads.map(ask, checks))


def _guarded(check: Any, tables: Tables) -> CheckResult:
    try:
        found: CheckResult = check(tables)
        return found
    except Exception as error:  # whatever a check meets, the verdict must not be valid
        return _failed(check.__module__.rpartition(".")[2], error)


def _failed(name: str, error: Exception) -> CheckResult:
    # An exception of a JVM that has died cannot even be asked what it says; this does not raise then.
    told = "".join(traceback.format_exception_only(error)).splitlines()
    says = f"check {name} failed: {' '.join(told[:2])}"
    return CheckResult(name=name, claim="", reasons=[Reason(kind="harness-error", says=says[:400])])


def _troubles(events: Sequence[Event]) -> list[Reason]:
    """What the run itself recorded as going wrong."""
    kinds: dict[str, ReasonKind] = {
        "stalled": "stalled", "harness-error": "harness-error", "fault-failed": "harness-error"
    }  # fmt: skip
    reasons = [
        Reason(kind=kinds[event["event"]], says=str(event["reason"])) for event in events if event["event"] in kinds
    ]
    if not any(event["event"] == "quiesced" for event in events):
        reasons.append(Reason(kind="harness-error", says="the run ended before it came to rest"))
    return reasons


_LIBRARY = "workers' client"


def _libraries(events: Sequence[Event]) -> dict[str, str]:
    """What the workers' own libraries say that they are."""
    told = {event["client"] for event in events if event["event"] == "ready" and "client" in event}
    return {_LIBRARY: ", ".join(sorted(told))} if told else {}


def _other_client(versions: Mapping[str, str]) -> list[Reason]:
    """A run that asked for a version of a client says nothing about another one."""
    asked, told = clients.version(versions.get("client", "")), versions.get(_LIBRARY, "")
    if not asked or not told or asked in told.split():
        return []
    return [Reason(kind="harness-error", says=f"the workers' client is {told}, and {asked} was asked for")]


def _counts(tables: Tables) -> dict[str, int]:
    outcomes = Counter(e["type"] for e in tables.events if e["event"] == "outcome")
    fenced = {
        (e["source"], e["incarnation"]) for e in tables.events
        if e["event"] == "error" and (e["fatal"] or e["call"] == "send-offsets") and _fencing(e["code"])
    }  # fmt: skip
    return {
        "inputs": sum(footer.num_rows for footer in tables.ledger_files.values()),
        "inputs_without_an_offset": tables.unplaced,
        "outputs": tables.facts["rows"]["outputs"],
        "transactions": sum(outcomes.values()),
        "committed": outcomes["ok"],
        "aborted": outcomes["fail"],
        "indeterminate": outcomes["info"],
        "fenced_workers": len(fenced),
        "worker_restarts": sum(
            e["event"] == "started" and e["source"].startswith("worker-") and e["incarnation"] > 1
            for e in tables.events
        ),
        "faults": sum(e["event"] == "fault-injected" for e in tables.events),
    }


def _fencing(code: str) -> bool:
    return any(word in code for word in ("FENCED", "PRODUCER_EPOCH", "GENERATION", "MEMBER"))
