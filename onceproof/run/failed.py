"""What a run leaves that ends before its verdict: an event in its history, and results that are `unknown`."""

from collections.abc import Callable, Mapping, Sequence

from onceproof.harness.base.errors import WorkloadError
from onceproof.harness.model.plan import Plan
from onceproof.harness.record.events import HarnessFailed, Interrupted, WorkloadFailed
from onceproof.harness.record.results import Mode, Reason, Results

Failed = Interrupted | WorkloadFailed | HarnessFailed


def reason(error: BaseException, crashes: Sequence[str], redact: Callable[[str], str]) -> Reason:
    """Return why a run has no verdict: `interrupted`, `workload-error` or `harness-error`.

    `crashes` are those of its processes, and `redact` hides secrets.
    """
    if isinstance(error, KeyboardInterrupt):
        return Reason(kind="interrupted", says="the run was interrupted before its verdict")
    if isinstance(error, WorkloadError):
        return Reason(kind="workload-error", says=redact(str(error)))
    return Reason(kind="harness-error", says=redact("; ".join([f"{type(error).__name__}: {error}", *crashes])))


def event(why: Reason) -> Failed:
    """Return the event that says so."""
    kinds: Mapping[str, type[Failed]] = {"interrupted": Interrupted, "workload-error": WorkloadFailed}
    return kinds.get(why.kind, HarnessFailed)(reason=why.says)


def results(plan: Plan, why: Reason, *, command: str, versions: dict[str, str], mode: Mode) -> Results:
    """Return the results of such a run."""
    return Results(
        name=plan.scenario.name,
        seed=plan.seed,
        command=command,
        verdict="unknown",
        as_expected=False,
        expectation="the run ended early with an error",
        findings=[],
        reasons=[why],
        checks=[],
        counts={},
        versions=versions,
        mode=mode,
    )
