"""Check that the log still holds every input that the brokers acknowledged.

    input-lost    an acknowledged input that no fault deleted is absent at its offset, or different

    ledger: number 17 acknowledged at input/2 offset 9      log: input/2 offset 9 holds number 18, or nothing

Such a finding is a failure of the brokers, not of the pipeline.

An input that was acknowledged without its offset (the broker already had its batch) is looked up by its number. If it
is not found, in a partition from which nothing was deleted, it is reported at the end of the partition.

A record that the ledger does not have is an input too. The run is then `unknown` at best, since another producer wrote
to the topic, or since an input was stored twice. Ledger mode does not read the input topic, so this check is not
judged there.
"""

from functools import partial
from itertools import chain
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceproof.harness.record.results import Reason
from onceproof.verifiers import completeness
from onceproof.verifiers.evidence import fingerprints
from onceproof.verifiers.evidence.cached import cached
from onceproof.verifiers.evidence.check import INPUT_TOPIC, LOG, Check, Judged
from onceproof.verifiers.evidence.findings import Sample, finding
from onceproof.verifiers.evidence.frames import rows
from onceproof.verifiers.evidence.tables import Tables

CLAIM = "every acknowledged input that no fault deleted is unchanged at its offset"
_LOST = ("number", "partition", "offset", "found")


@cached
def lost(tables: Tables) -> DataFrame | None:
    """Return acknowledged inputs that are not at their offset; None if there are none.

    Columns: number, partition, offset (null if no offset was returned and the input was not found), found (the number
    of the record at that offset, if any).
    """
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
    return tables.unless_empty(wrong.unionAll(nowhere.select(*_LOST)))


@cached
def strangers(tables: Tables) -> DataFrame | None:
    """Return records of the input topic that the ledger does not have, not even as `info`; None if there are none.

    They include further copies of an input that the log holds more than once. They count as inputs, so the outputs
    that the pipeline makes from them are not phantoms.
    """
    if not tables.full:
        return None
    if fingerprints.same(tables, "ledger", "inputs"):  # speed: what follows finds none
        return None
    known = tables.ledger.select("partition", "offset", "digest")
    found = tables.first_of_unplaced.select("at.partition", "at.offset", "digest")
    return tables.unless_empty(
        tables.inputs.join(known.unionAll(found), ["partition", "offset", "digest"], "left_anti")
    )


def named_unread(tables: Tables, outputs: DataFrame) -> DataFrame:
    """Add a column `unread` to outputs: whether the header names an input that nobody knows.

    It is one at an offset of the input topic that the ledger does not have; only ledger mode leaves it unread. Such an
    input may be a further copy of one that the ledger has, or of another producer (`strangers`).
    """
    if tables.full:
        return outputs.withColumn("unread", F.lit(False))
    place = ["source_partition", "source_offset"]
    placed = tables.truth.select(
        F.col("partition").alias("source_partition"), F.col("offset").alias("source_offset"), F.lit(True).alias("known")
    )
    known = placed.join(outputs.select(*place).distinct(), place, "left_semi")  # speed
    ends = F.create_map(*(F.lit(each) for each in chain.from_iterable(tables.input_ends.items())))
    there = F.col("source_offset") < F.coalesce(ends[F.col("source_partition")], F.lit(0))
    return outputs.join(known, place, "left").withColumn(
        "unread", F.coalesce(there & F.col("known").isNull(), F.lit(False))
    )


def _judge(tables: Tables) -> Judged:
    findings = []
    wrong = lost(tables)
    if wrong is not None:
        findings = finding(
            tables,
            "input-lost",
            "acknowledged inputs are absent from the log, or the log holds another record at their offset",
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
    """Return a reason if the input topic has records that are not in the ledger."""
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
