"""What a scenario expects against what came out: met or not, in words; of a bug, whether it is proved or refuted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onceproof.harness.model.bug import Result
from onceproof.harness.model.scenario import Expect, Scenario
from onceproof.harness.record.history import Events
from onceproof.harness.record.results import Finding, Reason, Verdict


@dataclass(frozen=True, kw_only=True)
class Met:
    met: bool
    says: str
    result: Result = ""


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """What came out of a run: the verdict with what it rests on, its history, and its versions."""

    word: Verdict
    findings: Sequence[Finding]
    reasons: Sequence[Reason]
    events: Events
    versions: Mapping[str, str]


def judge(scenario: Scenario, came: RunOutcome) -> Met:
    """A scenario about a bug expects it where it is not fixed, and a valid run where it is."""
    wanted, bug = _met(scenario.expect, came), scenario.bug
    if bug is None:
        return wanted
    refuted = _refuted(scenario.expect, came)
    result: Result = "proved" if wanted.met else "refuted" if refuted.met else ""
    affected = bug.affects(
        kafka=came.versions["kafka"],
        client=came.versions["client"],
        transaction_version=int(came.versions["transaction.version"]),
    )
    where = f"{bug.issue} is {'not fixed' if affected else 'fixed'} here"
    chosen = wanted if affected else refuted
    return Met(met=chosen.met, says=f"{where}: {chosen.says}", result=result)


def _met(expect: Expect, came: RunOutcome) -> Met:
    """A negative control that was vacuous is not met."""
    want, classes = expect.expected_verdict, expect.findings
    got = sorted({finding.cls for finding in came.findings})
    wish = f"expected {want}" + (f" with exactly {', '.join(sorted(classes))}" if classes else "")
    if came.word != want:
        return Met(met=False, says=f"{wish}; the verdict is {came.word}")
    if classes and got != sorted(set(classes)):
        return Met(met=False, says=f"{wish}; found {', '.join(got)}")
    weak = [reason.kind for reason in came.reasons if reason.kind in ("vacuous", "harness-error")]
    if weak:
        return Met(met=False, says=f"{wish}; met, but the run is {weak[0]}")
    if expect.client_error is not None and not expect.client_error.seen(came.events):
        return Met(met=False, says=f"{wish} and {expect.client_error}, which no worker met")
    return Met(met=True, says=f"{wish}{f' and {expect.client_error}' if expect.client_error else ''}; so it is")


def _refuted(expect: Expect, came: RunOutcome) -> Met:
    valid = _met(Expect(verdict="valid"), came)
    if valid.met and expect.client_error is not None and expect.client_error.seen(came.events):
        return Met(met=False, says=f"expected valid and no {expect.client_error}, which a worker met")
    return valid
