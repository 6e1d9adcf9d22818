"""Are the inputs still what the brokers acknowledged? (Their fault if not, not the pipeline's.)

    input-lost    an acknowledged input, not deleted, is absent or different at its offset

    ledger: number 17 acknowledged at input/2 offset 9      log: input/2 offset 9 holds number 18, or nothing

What the log holds instead is an input too, and nobody's in the ledger: the run is `unknown` at best, since somebody
else wrote there. In ledger mode nobody read the input, and this question is not asked.
"""


from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.verdict import CheckResult, Reason
from verifiers import completeness, summary
from verifiers.findings import finding
from verifiers.spark import rows, unless_empty
from verifiers.tables import Tables, kept

CLAIM = "every acknowledged input that no fault deleted is at its offset, unchanged"


@kept
def lost(tables: Tables) -> DataFrame | None:
    """Acknowledged inputs that are not at their offset: number, partition, offset, found (the number there, if any)."""
    if summary.same(tables, "ledger", "inputs"):  # also in ledger mode, which has neither
        return None
    log = tables.inputs.select("partition", "offset", F.col("number").alias("found"), F.col("digest").alias("there"))
    holes = F.broadcast(completeness.frame(tables).where("topic = 'input'").drop("topic"))
    both = summary.held(tables).join(log, ["partition", "offset"], "left").join(holes, "partition", "left")
    return unless_empty(both.where("there != digest OR there IS NULL AND hole IS NULL"))


@kept
def strangers(tables: Tables) -> DataFrame | None:
    """Inputs in the log that the ledger does not have, not even as `info`: somebody else wrote to the input.

    They are inputs all the same, so what the pipeline makes of them is no phantom.
    """
    if summary.same(tables, "ledger", "inputs"):  # also in ledger mode, which has neither
        return None
    known = tables.ledger.select("partition", "offset", "digest")
    info = tables.ledger.where("offset IS NULL").select("number", "digest")
    unknown = tables.inputs.join(known, ["partition", "offset", "digest"], "left_anti")
    return unless_empty(unknown.join(info, ["number", "digest"], "left_anti"))


def check(tables: Tables) -> CheckResult:
    findings = []
    wrong = lost(tables)
    if wrong is not None:
        findings = finding(
            tables, "input-lost", "acknowledged inputs are absent from the log, or different", wrong,
            lambda row: {"topic": tables.input_topic, "partition": row["partition"], "offset": row["offset"],
                         "number": row["number"], "found": row["found"]},
            order=("partition", "offset"),
        )  # fmt: skip
    return CheckResult(name="inputs", claim=CLAIM, findings=findings, reasons=_strange(tables))


def _strange(tables: Tables) -> list[Reason]:
    strange = strangers(tables)
    if strange is None:
        return []
    [row] = rows(strange.orderBy("partition", "offset").limit(1))
    says = (f"{strange.count()} records of {tables.input_topic} are not in the ledger, the first at partition "
            f"{row['partition']} offset {row['offset']}")  # fmt: skip
    return [Reason(kind="indeterminate", says=says)]


CHECKS = (check,)
