"""A check: one question to a run's tables, with what it needs and what it says it compared.

    CHECK = Check(name="replicas", claim="all replicas of a partition hold the same batches", run=compare)

A check says what it needs. Where one of these things is missing, its result is `not judged` with the reason: it never
holds and never fails. A check that ran says how many records, transactions, batches or replicas it compared; one that
compared nothing cannot have judged anything, and says so.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from onceproof.harness.record.results import CheckResult, Finding, Reason
from onceproof.verifiers.evidence.tables import Tables


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What a check found, why it may not know, and what it compared: a unit in the plural → how many of them."""

    compared: Mapping[str, int]
    findings: Sequence[Finding] = ()
    reasons: Sequence[Reason] = ()


@dataclass(frozen=True, kw_only=True)
class Need:
    """Something that a run may lack. `says` completes "not judged: …".

    `essential`: without it the verdict cannot be valid, since the claim applies to the run and was not judged. The
    other needs say that the claim does not apply, or is a choice of the scenario.
    """

    says: str
    met: Callable[[Tables], bool]
    essential: bool = False


@dataclass(frozen=True, kw_only=True)
class Check:
    """One question. `claim` is the statement that a finding refutes."""

    name: str
    claim: str
    run: Callable[[Tables], Judged]
    needs: Sequence[Need] = field(default=())

    def judge(self, tables: Tables) -> CheckResult:
        """The result, also of a check whose needs are not met. Raises whatever `run` raises."""
        for need in sorted(self.needs, key=lambda each: each.essential):  # what does not apply is no gap
            if not need.met(tables):
                says = f"the check {self.name} was not judged: {need.says}"
                reasons = [Reason(kind="indeterminate", says=says)] if need.essential else []
                return CheckResult(name=self.name, claim=self.claim, reasons=reasons, not_judged=need.says)
        judged = self.run(tables)
        nothing = "" if any(judged.compared.values()) or judged.findings or judged.reasons else "nothing to compare"
        return CheckResult(
            name=self.name,
            claim=self.claim,
            findings=judged.findings,
            reasons=judged.reasons,
            compared=dict(judged.compared),
            not_judged=nothing,
        )


LOG = Need(
    says="the segments of this system's replicas cannot be read",
    met=lambda tables: (tables.folder / "tables" / "batches.parquet").exists(),
    essential=True,
)
TRANSACTION_STATE = Need(
    says="this system does not say which transactions are open",
    met=lambda tables: tables.facts["open_transactions"] is not None,
    essential=True,
)
INPUT_TOPIC = Need(
    says="ledger mode did not read the input topic, and trusts what the brokers acknowledged",
    met=lambda tables: tables.full,
)
AGGREGATE = Need(
    says="this pipeline has no aggregate",
    met=lambda tables: tables.workload.aggregate is not None,
)
HIDDEN_RECORDS = Need(
    says="the scenario did not ask for the records that a read_committed reader does not see",
    met=lambda tables: tables.plan.scenario.collect.read_uncommitted,
)
OBSERVER = Need(
    says="no live observer watched",
    met=lambda tables: tables.plan.scenario.workload.observer or tables.observed is not None,
)
