"""Define a check: its name, its claim about a run, its needs, and the function that judges the run's tables.

    CHECK = Check(name="replicas", claim="all replicas of a partition hold the same batches", run=compare)

If a need of a check is not met, the result is `not judged` with the reason; such a check neither holds nor fails. A
check that ran reports how many records, transactions, batches or replicas it compared. If it compared nothing, its
result is `not judged` as well.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from onceproof.harness.record.results import CheckResult, Finding, Reason
from onceproof.verifiers.evidence.tables import Tables


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The outcome of a check: its findings, reasons why the verdict is `unknown`, and the number of things it compared.

    `compared` maps a unit in the plural, such as "outputs", to a number.
    """

    compared: Mapping[str, int]
    findings: Sequence[Finding] = ()
    reasons: Sequence[Reason] = ()


@dataclass(frozen=True, kw_only=True)
class Need:
    """Something that a run may lack. `says` is the reason that a result gives: "not judged: …".

    If an `essential` need is not met, the verdict cannot be valid, since the claim applies to the run and was not
    judged. If another need is not met, the claim does not apply to the run, or the scenario did not ask for the check.
    """

    says: str
    met: Callable[[Tables], bool]
    essential: bool = False


@dataclass(frozen=True, kw_only=True)
class Check:
    """A check of a run. `claim` is the statement that a finding refutes."""

    name: str
    claim: str
    run: Callable[[Tables], Judged]
    needs: Sequence[Need] = field(default=())

    def judge(self, tables: Tables) -> CheckResult:
        """Return the result for these tables, `not judged` if a need is not met. Raises whatever `run` raises."""
        for need in sorted(self.needs, key=lambda each: each.essential):  # a claim that does not apply is no gap
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
COORDINATOR_LOG = Need(
    says="the log of this system's transaction coordinators cannot be read",
    met=lambda tables: (tables.folder / "tables" / "states.parquet").exists(),
    essential=True,
)
TRANSACTION_STATE = Need(
    says="this system does not report which transactions are open",
    met=lambda tables: tables.facts["open_transactions"] is not None,
    essential=True,
)
INPUT_TOPIC = Need(
    says="ledger mode does not read the input topic and trusts what the brokers acknowledged",
    met=lambda tables: tables.full,
)
AGGREGATE = Need(
    says="this pipeline has no aggregate",
    met=lambda tables: tables.workload.aggregate is not None,
)
COMMITTED = Need(
    says="offsets are not committed to a group",
    met=lambda tables: tables.workload.claim.position not in ("database", "none"),
)
IDENTITY = Need(
    says="the scenario does not say which input an output comes from",
    met=lambda tables: tables.workload.identified,
)
IN_ORDER = Need(
    says="the scenario says that outputs may be in any order",
    met=lambda tables: tables.workload.contract is None or tables.workload.contract.in_order,
)
MODEL = Need(
    says="the scenario has no model",
    met=lambda tables: tables.workload.contract is not None and bool(tables.workload.contract.model),
)
TRANSACTIONAL = Need(
    says="this pipeline does not claim to use transactions",
    met=lambda tables: tables.workload.claim.transactional,
)
HIDDEN_RECORDS = Need(
    says="the scenario did not ask for the records that a read_committed reader does not see",
    met=lambda tables: tables.plan.scenario.collect.read_uncommitted,
)
REQUESTS = Need(
    says="the scenario did not ask for the requests of the workers' clients",
    met=lambda tables: (tables.folder / "tables" / "requests.parquet").exists(),
)
OBSERVER = Need(
    says="no live observer read the outputs during the run",
    met=lambda tables: (
        tables.observed is not None or (tables.plan.scenario.workload.observer and bool(tables.workload.judged))
    ),
)
