"""Judge a run's folder: from its tables and its history to its verdict.

No cluster is needed, and judging the same folder again gives the same results. If the process is killed, the next one
takes the results of the checks that were done (`kept`). Every check runs, whatever the other checks find. A check that
raises an exception makes the verdict `unknown: harness-error`, never `valid`. A folder whose files differ from its
manifest has the same verdict, and no check runs on it.

A folder may come from anyone, so no Python file that it names is loaded. What a verdict needs of the workload is data
in the folder (`workload.json`), a fault by file has left what it saw in the history (`fault-witnessed`), and a check by
file runs only if the caller names it.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from onceproof.harness.artifacts import clients
from onceproof.harness.base import files
from onceproof.harness.base.errors import BadInput, in_a_line
from onceproof.harness.base.memory import collector_paused
from onceproof.harness.judge import expectation, vacuity
from onceproof.harness.judge.expectation import RunOutcome
from onceproof.harness.model import declaration, plan, registry
from onceproof.harness.record import collected, history, manifest
from onceproof.harness.record.events import (
    ClientFailed,
    FaultFailed,
    FaultInjected,
    HarnessFailed,
    Interrupted,
    NodeExited,
    Outcome,
    Quiesced,
    Ready,
    RunDescribed,
    Stalled,
    Started,
    WorkloadFailed,
)
from onceproof.harness.record.history import Events
from onceproof.harness.record.results import CheckResult, Mode, Reason, Results, decide
from onceproof.verifiers import levels, lints
from onceproof.verifiers.evidence import executors, model_sql, reading
from onceproof.verifiers.evidence import master as masters
from onceproof.verifiers.evidence.check import Check
from onceproof.verifiers.evidence.spark import killed_when_interrupted, let_go, session
from onceproof.verifiers.evidence.storage import Storage
from onceproof.verifiers.evidence.tables import Tables
from onceproof.verifiers.evidence.time_limit import Overdue, Watch, limit_s
from onceproof.verifiers.kept import Kept

_CHECKS_AT_ONCE = 3
_PATTERN = re.compile(r"[*?\[\]{}\\]")
_log = logging.getLogger(__name__)


@collector_paused()  # `let_go` collects what the verdict leaves
def verify(
    folder: Path,
    *,
    master: str = "local[2]",
    look: Callable[[], None] | None = None,
    checks: Sequence[str] = (),
    say: Callable[[str], None] | None = None,
    at: Storage | None = None,
) -> Results:
    """Judge a run's folder and write its results.json.

    `say` is told how many records have been read, every two seconds; a check may read the same records again. `look`
    reads the records that a read_committed reader does not see. It is called at most once, when a finding asks for
    these records. `checks` names checks to run in addition to the registered ones, as FILE.py:NAME. `at` has a copy of
    the folder, if Spark's executors do not share its path.

    Raises BadInput when the folder is not a run's folder, is damaged in a way that the manifest does not show, or has
    no tables, HarnessError when executors cannot read the folder, or its copy changes meanwhile, and OSError when the
    results cannot be written; earlier results then stay whole.
    """
    added = all_checks(checks)
    if not (folder / "tables").is_dir():
        raise BadInput(
            f"{folder}: no tables/ in this folder; the run ended before its tables were collected, or this is not a "
            "run's folder"
        )
    if _PATTERN.search(where := str(folder) if at is None else at.uri):
        raise BadInput(f"{where}: Spark takes a path with one of *?[]{{}}\\ for a pattern; allowed: one without")
    files.replaceable(folder / "results.json")
    planned, events = plan.read(folder / "plan.json"), history.read(folder / "history.jsonl")
    damage = [Reason(kind="harness-error", says=f"damaged: {each}") for each in manifest.damage(folder)]
    declared = None if damage else declaration.read(folder)
    judged: list[CheckResult] = []
    kept = None if damage else Kept(folder)
    counts: dict[str, int] = {}
    mode: Mode = "full"
    if kept is not None:  # damaged tables prove nothing
        records = sum(collected.read(folder)["rows"].values())
        tables = Tables(
            folder, session(master, records=records), planned, events, look=look, at=None if at is None else at.uri
        )
        if masters.elsewhere(master):
            executors.check_run(tables.spark, tables.at("manifest.json"), folder / "manifest.json")
        limit = limit_s(records)
        try:
            model_sql.check(tables.spark, tables.workload, folder)
            with Watch(tables.spark, limit_s=limit) as watch, reading.told(tables.spark, say):
                judged = in_threads(lambda check: _guarded(check, tables, watch, kept), added)
                if kept.resumed:
                    _log.info("took the results of %d checks from a verdict that was interrupted", kept.resumed)
                judged += _left_out(planned.scenario.checks, checks)
                mode = "full" if tables.full else "ledger"
                try:
                    counts = watch.run("the counts", lambda: _counts(tables))
                except Exception as error:
                    judged.append(
                        _failed("counts", "the inputs, outputs and transactions of the run can be counted", error)
                    )
            if at is not None:
                at.check_unchanged()
        finally:
            with suppress(Exception):  # the session may have died, and then the checks have reported it
                let_go(tables.spark)
    reasons = [*damage, *(reason for check in judged for reason in check.reasons)]
    run = events.first(RunDescribed)
    versions = {**(run.versions if run else {}), **_libraries(events)}
    reasons += vacuity.vacuous(planned, events) + _troubles(events) + _other_client(versions)
    if counts.get("outputs") == 0:
        reasons.append(Reason(kind="vacuous", says="no output was written"))
    findings = [finding for check in judged for finding in check.findings]
    word = decide(findings, reasons)
    came = RunOutcome(word=word, findings=findings, reasons=reasons, events=events, versions=versions)
    met, bug = expectation.judge(planned.scenario, came), planned.scenario.bug
    results = Results(
        name=planned.scenario.name,
        seed=planned.seed,
        command=run.command if run else "onceproof",
        verdict=word,
        as_expected=met.met,
        expectation=met.says,
        findings=findings,
        reasons=reasons,
        checks=judged,
        counts=counts,
        versions=versions,
        mode=mode,
        level=2 if declared is None else levels.level(declared),
        classes={} if declared is None else levels.classes(declared, judged),
        lints=None if declared is None else lints.lints(folder, declared, faults=bool(planned.faults)),
        issue=bug.issue if bug else "",
        result=met.result,
    )
    results.write(folder / "results.json")
    manifest.seal_results(folder)
    if kept is not None and not any(each.kind == "harness-error" for check in judged for each in check.reasons):
        kept.forget()  # otherwise Spark's process may have ended, and the next verdict need not judge all of it again
    return results


def all_checks(more: Sequence[str] = ()) -> list[Check]:
    """Return every registered check, and the checks in `more`, each named as FILE.py:NAME.

    Raises BadInput when one of them is not a Check.
    """
    names = [*registry.names("check"), *more]
    return list({name: registry.of_class("check", name, Check) for name in names}.values())


def in_threads(ask: Callable[[Check], CheckResult], checks: Sequence[Check]) -> list[CheckResult]:
    """Return the results of `ask` for each check, in the order of `checks`.

    A few checks run at the same time, since Spark plans each query on a single core.
    """
    with ThreadPoolExecutor(_CHECKS_AT_ONCE) as threads, killed_when_interrupted():
        return list(threads.map(ask, checks))


def _guarded(check: Check, tables: Tables, watch: Watch, kept: Kept) -> CheckResult:
    if (before := kept.of(check)) is not None:
        return before
    try:
        return kept.keep(check, watch.run(f"the check {check.name}", lambda: check.judge(tables)))
    except Overdue as error:
        says = f"the check {check.name} was not judged: {error}"
        reason = Reason(kind="indeterminate", says=says)
        return CheckResult(name=check.name, claim=check.claim, reasons=[reason], not_judged=str(error))
    except (Exception, SystemExit) as error:  # the verdict must not be valid, whatever the error is
        return _failed(check.name, check.claim, error)


def _left_out(wanted: Sequence[str], given: Sequence[str]) -> list[CheckResult]:
    """Return a result for each check that the scenario names and that did not run, because the caller did not name it.

    A folder that has moved names another path, so a check is known by its file's name and its attribute.
    """
    names = {*registry.names("check"), *(Path(name).name for name in given)}
    says = "its code is not part of the run folder; `onceproof verify --check FILE.py:NAME` loads and runs it"
    return [
        CheckResult(
            name=name,
            claim="a check of the scenario",
            reasons=[Reason(kind="indeterminate", says=f"the check {name} was not judged: {says}")],
            not_judged=says,
        )
        for name in wanted
        if name not in names and Path(name).name not in names
    ]


def _failed(name: str, claim: str, error: BaseException) -> CheckResult:
    reason = Reason(kind="harness-error", says=f"check {name} failed: {in_a_line(error)}")
    return CheckResult(name=name, claim=claim, reasons=[reason])


def _troubles(events: Events) -> list[Reason]:
    """Return reasons that the run recorded itself: stalls, failures of the harness and failures of faults."""
    reasons = [Reason(kind="stalled", says=each.reason) for each in events.of(Stalled)]
    reasons += [Reason(kind="harness-error", says=each.reason) for each in events.of(HarnessFailed)]
    reasons += [
        Reason(kind="unplanned-failure", says=f"{each.node} exited with status {each.code}, and no fault caused it")
        for each in events.of(NodeExited)
    ]
    reasons += [Reason(kind="interrupted", says=each.reason) for each in events.of(Interrupted)]
    reasons += [Reason(kind="workload-error", says=each.reason) for each in events.of(WorkloadFailed)]
    reasons += [Reason(kind="harness-error", says=each.reason) for each in events.of(FaultFailed)]
    if events.first(Quiesced) is None:
        says = "the run ended before it came to rest, so its tables do not show its final state"
        reasons.append(Reason(kind="harness-error", says=says))
    return reasons


_LIBRARY = "workers' client"


def _libraries(events: Events) -> dict[str, str]:
    """Return the client libraries and versions that the workers reported, for `Results.versions`."""
    told = {each.client for each in events.of(Ready) if each.client}
    return {_LIBRARY: ", ".join(sorted(told))} if told else {}


def _other_client(versions: Mapping[str, str]) -> list[Reason]:
    """Return a reason if the workers used another version of the client than the run asked for."""
    asked, told = clients.version(versions.get("client", "")), versions.get(_LIBRARY, "")
    if not asked or not told or asked in told.split():
        return []
    says = f"the workers' client is {told}, but the run asked for version {asked}"
    return [Reason(kind="harness-error", says=says)]


def _counts(tables: Tables) -> dict[str, int]:
    """Return the numbers at the top of a report, by name."""
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
    """Return whether a client's error code means that the producer or the group member was fenced."""
    return any(word in code for word in ("FENCED", "PRODUCER_EPOCH", "GENERATION", "MEMBER"))
