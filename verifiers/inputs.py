"""Are the inputs still what the brokers acknowledged? (Their fault if not, not the pipeline's.)

    input-lost    an acknowledged input, not deleted, is absent or different at its offset

    ledger: number 17 acknowledged at input/2 offset 9      log: input/2 offset 9 holds number 18, or nothing
"""

from pyspark.sql import functions as F

from harness.verdict import SAMPLES_MAX, CheckResult, Finding, Reason
from verifiers import accounts, completeness, summary
from verifiers.samples import batches_around
from verifiers.spark import rows
from verifiers.tables import Tables

CLAIM = "every acknowledged input that no fault deleted is at its offset, unchanged"


def check(tables: Tables) -> CheckResult:
    if summary.log_holds_the_ledger(tables):
        return CheckResult(name="inputs", claim=CLAIM)
    return _compare(tables)


def _compare(tables: Tables) -> CheckResult:
    """Row by row, where the fingerprints differ."""
    log = tables.inputs.select("partition", "offset", F.col("number").alias("found"), F.col("digest").alias("there"))
    both = summary.held(tables).join(log, ["partition", "offset"], "left")
    wrong = both.where("there IS NULL OR there != digest")
    if completeness.incomplete(tables):
        wrong = wrong.where("there IS NOT NULL")
    reasons = _strangers(tables)
    count = wrong.count()
    if not count:
        return CheckResult(name="inputs", claim=CLAIM, reasons=reasons)
    samples = [
        {"topic": tables.input_topic, "partition": row["partition"], "offset": row["offset"], "number": row["number"],
         "found": row["found"]}
        for row in rows(wrong.orderBy("partition", "offset").limit(SAMPLES_MAX))
    ]  # fmt: skip
    says = "acknowledged inputs are absent from the log, or different"
    found = Finding(cls="input-lost", count=count, says=says, samples=batches_around(tables, samples))
    return CheckResult(name="inputs", claim=CLAIM, findings=[found], reasons=reasons)


def _strangers(tables: Tables) -> list[Reason]:
    strange = accounts.strangers(tables)
    count = strange.count()
    if not count:
        return []
    [row] = rows(strange.orderBy("partition", "offset").limit(1))
    says = (f"{count} records of {tables.input_topic} are not in the ledger, the first at partition "
            f"{row['partition']} offset {row['offset']}")  # fmt: skip
    return [Reason(kind="indeterminate", says=says)]


CHECKS = (check,)
