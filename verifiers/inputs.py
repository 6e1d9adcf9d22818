"""Are the inputs still what the brokers acknowledged? (Their fault if not, not the pipeline's.)

    input-lost    an acknowledged input, not deleted, is absent or different at its offset

    ledger: number 17 acknowledged at input/2 offset 9      log: input/2 offset 9 holds number 18, or nothing

An input that was acknowledged without its offset (the broker had its batch already) is looked for by its number; one
that is nowhere in a partition from which nothing was deleted is lost at its end.

What the log holds instead is an input too, and nobody's in the ledger: the run is `unknown` at best, since somebody
else wrote there; and so it is when an input stands there twice. In ledger mode nobody read the input, and this question
is not asked.
"""

from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceproof.harness.record.results import Reason
from onceproof.verifiers import completeness
from onceproof.verifiers.evidence import fingerprints
from onceproof.verifiers.evidence.check import INPUT_TOPIC, LOG, Check, Judged
from onceproof.verifiers.evidence.findings import Sample, finding
from onceproof.verifiers.evidence.spark import rows, unless_empty
from onceproof.verifiers.evidence.tables import Tables, cached

CLAIM = "every acknowledged input that no fault deleted is at its offset, unchanged"
_LOST = ("number", "partition", "offset", "found")


@cached
def lost(tables: Tables) -> DataFrame | None:
    """Acknowledged inputs that are not at their offset: number, partition, offset (null: they were nowhere), found (the
    number there, if any)."""
    if not tables.full:
        return None
    if not tables.unplaced and fingerprints.same(tables, "ledger", "inputs"):  # speed: what follows finds none
        return None
    log = tables.inputs.select("partition", "offset", F.col("number").alias("found"), F.col("digest").alias("there"))
    holes = F.broadcast(completeness.frame(tables).where("topic = 'input'").drop("topic"))
    both = fingerprints.held(tables).join(log, ["partition", "offset"], "left").join(holes, "partition", "left")
    wrong = both.where("there != digest OR there IS NULL AND hole IS NULL").select(*_LOST)
    whole = tables.starts.where("topic = 'input' AND start = 0").join(holes, "partition", "left_anti")
    nowhere = (
        tables.ledger.where("offset IS NULL AND acknowledged")
        .join(F.broadcast(whole), "partition", "left_semi")
        .join(tables.first_of_unplaced, ["number", "digest"], "left_anti")
        .withColumn("found", F.lit(None).cast("bigint"))
    )
    return unless_empty(wrong.unionAll(nowhere.select(*_LOST)))


@cached
def strangers(tables: Tables) -> DataFrame | None:
    """Inputs that the ledger does not have, not even as `info`, or that the log has more often: somebody else wrote.

    They are inputs all the same, so what the pipeline makes of them is no phantom.
    """
    if not tables.full:
        return None
    if fingerprints.same(tables, "ledger", "inputs"):  # speed: what follows finds none
        return None
    known = tables.ledger.select("partition", "offset", "digest")
    found = tables.first_of_unplaced.select("at.partition", "at.offset", "digest")
    return unless_empty(tables.inputs.join(known.unionAll(found), ["partition", "offset", "digest"], "left_anti"))


def _judge(tables: Tables) -> Judged:
    findings = []
    wrong = lost(tables)
    if wrong is not None:
        findings = finding(
            tables,
            "input-lost",
            "acknowledged inputs are absent from the log, or different",
            wrong,
            partial(_sample, tables),
            order=("partition", "offset"),
        )
    return Judged(compared=tables.sizes("inputs"), findings=findings, reasons=_strange(tables))


def _sample(tables: Tables, row: Any) -> Sample:
    offset = tables.input_ends[row["partition"]] if row["offset"] is None else row["offset"]
    return {
        "topic": tables.input_topic,
        "partition": row["partition"],
        "offset": offset,
        "number": row["number"],
        "found": row["found"],
    }


def _strange(tables: Tables) -> list[Reason]:
    strange = strangers(tables)
    if strange is None:
        return []
    [row] = rows(strange.orderBy("partition", "offset").limit(1))
    says = (
        f"{strange.count()} records of {tables.input_topic} are not in the ledger, the first at partition "
        f"{row['partition']} offset {row['offset']}"
    )
    return [Reason(kind="indeterminate", says=says)]


CHECK = Check(name="inputs", claim=CLAIM, run=_judge, needs=(LOG, INPUT_TOPIC))
