"""Compares the result of a run with the scenario's expectation, and decides whether a bug is proved or refuted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onceproof.harness.model.bug import Result
from onceproof.harness.model.scenario import Expect, Scenario
from onceproof.harness.record.history import Events
from onceproof.harness.record.results import Finding, Reason, Verdict


@dataclass(frozen=True, kw_only=True)
class Met:
    """Whether the expectation was met, with the reason in words.

    `result` is `proved` or `refuted` for a scenario about a bug, and empty if it is neither or there is no bug.
    """

    met: bool
    says: str
    result: Result = ""


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """The result of a run: its verdict, findings, reasons for `unknown`, history and versions.

    `versions` has the keys `kafka`, `client` and `transaction.version` if the scenario is about a bug.
    """

    word: Verdict
    findings: Sequence[Finding]
    reasons: Sequence[Reason]
    events: Events
    versions: Mapping[str, str]


def judge(scenario: Scenario, came: RunOutcome) -> Met:
    """Return whether the run is as its scenario expects.

    A scenario about a bug expects the bug in the versions in which it is not fixed, and a valid run in the others.
    """
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
    where = f"{bug.issue} is {'not fixed' if affected else 'fixed'} in these versions"
    chosen = wanted if affected else refuted
    return Met(met=chosen.met, says=f"{where}; {chosen.says}", result=result)


_WEAK = ("vacuous", "unplanned-failure", "workload-error", "harness-error")


def _met(expect: Expect, outcome: RunOutcome) -> Met:
    """Compare a run with an expectation; a vacuous run does not meet one, even if its findings match."""
    want, classes = expect.expected_verdict, expect.findings
    got = sorted({finding.cls for finding in outcome.findings})
    wish = want + (f" with exactly {', '.join(sorted(classes))}" if classes else "")
    if outcome.word != want:
        return Met(met=False, says=f"expected {wish}; the verdict is {outcome.word}")
    if classes and got != sorted(set(classes)):
        return Met(met=False, says=f"expected {wish}; found {', '.join(got)}")
    weak = [reason.kind for reason in outcome.reasons if reason.kind in _WEAK]
    if weak:
        return Met(met=False, says=f"expected {wish}; the findings match, but the run is not reliable: {weak[0]}")
    if expect.client_error is None:
        return Met(met=True, says=f"as expected: {wish}")
    if not expect.client_error.seen(outcome.events):
        return Met(met=False, says=f"expected {wish} and the error {expect.client_error}, which no worker reported")
    return Met(met=True, says=f"as expected: {wish} and the error {expect.client_error}")


def _refuted(expect: Expect, outcome: RunOutcome) -> Met:
    """Return whether the run is valid and shows no sign of the bug."""
    valid = _met(Expect(verdict="valid"), outcome)
    if valid.met and expect.client_error is not None and expect.client_error.seen(outcome.events):
        return Met(met=False, says=f"expected valid without the error {expect.client_error}, which a worker reported")
    return valid
