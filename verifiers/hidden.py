"""Show the hidden records that bear on a finding: those of aborted and of open transactions.

    tables/hidden.parquet    as outputs.parquet: the records from the log start up to the high watermark that a
                             read_uncommitted reader sees and a read_committed reader does not

    lost: input 41, missing from output           hidden: output/2 offset 90 number 41, aborted
    torn-transaction: output/2 offsets 90..94     hidden: output/2 offset 90 … 94, aborted
    aborted-read: output/2 offset 80              hidden: the other records of its transaction

The records are read when the first finding asks for them, while the cluster is up; or before anything is judged, if
the scenario says `[collect] read_uncommitted = true`. In the latter case this check compares Kafka's reader with the
segments: each partition must have as many hidden records as its log has offsets of aborted and open transactions.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from onceproof.harness.record.results import Reason
from onceproof.verifiers.evidence import fingerprints
from onceproof.verifiers.evidence.cached import cached
from onceproof.verifiers.evidence.check import HIDDEN_RECORDS, LOG, Check, Judged
from onceproof.verifiers.evidence.frames import rows, small
from onceproof.verifiers.evidence.tables import Tables

CLAIM = "the records that only a read_uncommitted reader sees are those that the log shows as aborted or open"
_SHOWN = 5
_COLUMNS = ("topic", "partition", "offset", "number", "worker", "incarnation", "transaction", "fate")
Sample = dict[str, Any]


@cached
def frame(tables: Tables) -> DataFrame | None:
    """Return the hidden records, with the columns of `tables.outputs`; None if they were not read and cannot be."""
    path = tables.folder / "tables" / "hidden.parquet"
    if not path.exists() and tables.look is not None:
        tables.look()
    return tables.told("tables/hidden.parquet") if path.exists() else None


def beside(tables: Tables, cls: str, samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples of a finding, each with up to five hidden records that bear on it under the key `hidden`.

    Samples of a class to which hidden records say nothing are returned as they are.
    """
    conditions = {index: says for index, sample in enumerate(samples) if (says := _bears(tables, cls, sample))}
    hidden = frame(tables) if conditions else None
    if hidden is None:
        return list(samples)
    asked = F.array(*(F.when(F.expr(says), F.lit(index)) for index, says in conditions.items()))
    nth = F.row_number().over(Window.partitionBy("of").orderBy("topic", "partition", "offset"))
    bearing = hidden.withColumn("of", F.explode(F.array_compact(asked))).withColumn("nth", nth)
    few = bearing.where(F.col("nth") <= _SHOWN)
    inside = F.expr("h.topic = b.topic AND h.partition = b.partition AND h.offset BETWEEN b.first AND b.last")
    placed = few.alias("h").join(tables.log.alias("b"), inside, "left")
    found = rows(placed.select("of", *(f"h.{name}" for name in _COLUMNS[:-1]), "fate").orderBy("of", "h.offset"))
    return [
        {**sample, "hidden": [{name: row[name] for name in _COLUMNS} for row in found if row["of"] == index]}
        if index in conditions
        else sample
        for index, sample in enumerate(samples)
    ]


def _bears(tables: Tables, cls: str, sample: Mapping[str, Any]) -> str:
    """Return the condition, in Spark SQL, for hidden records that bear on a sample; empty if none do."""
    here = f"topic = '{tables.role(sample['topic'])}' AND partition = {sample['partition']}"
    if cls == "lost" and "missing_from" in sample:  # a missing batch names no input
        return f"topic = '{tables.role(sample['missing_from'])}' AND number = {sample['number']}"
    if cls == "torn-transaction":
        return f"{here} AND offset BETWEEN {sample['offset']} AND {sample['last']}"
    if cls == "hung-transaction":
        return f"{here} AND offset >= {sample['offset']}"
    header = sample.get("header", {})
    if cls == "aborted-read" and header["worker"] is not None:
        return " AND ".join(f"{name} = {header[name]}" for name in ("worker", "incarnation", "transaction"))
    return ""


def _judge(tables: Tables) -> Judged:
    hidden = frame(tables)
    if hidden is None:
        says = "the scenario asks for read_uncommitted, but the hidden records were not read"
        return Judged(compared={}, reasons=[Reason(kind="indeterminate", says=says)])
    ends = small(
        tables.spark,
        [(tables.role(each["topic"]), each["partition"], each["end"]) for each in tables.pinned],
        "topic string, partition int, end bigint",
    )
    below = hidden.join(F.broadcast(ends), ["topic", "partition"]).where("offset < end")
    counted = rows(below.groupBy("topic", "partition").agg(F.count("*").alias("records")))
    seen = {(row["topic"], row["partition"]): row["records"] for row in counted}
    reasons = [
        Reason(
            kind="indeterminate",
            says=f"{each['topic']}/{each['partition']}: {aborted} aborted in the log, a "
            f"read_uncommitted reader saw {records} that are not visible to a read_committed reader",
        )
        for each in tables.pinned
        if (role := tables.role(each["topic"])) in tables.workload.judged
        if (aborted := _aborted(tables, each)) != (records := seen.get((role, each["partition"]), 0))
    ]
    compared = {**tables.sizes("batches"), "hidden records": sum(seen.values())}
    return Judged(compared=compared, reasons=reasons)


def _aborted(tables: Tables, each: Mapping[str, Any]) -> int:
    """Return the number of offsets of aborted and open transactions in the log of a partition's leader."""
    log = fingerprints.logs(tables).get((each["topic"], each["partition"], each["leader"]))
    return log.offsets["aborted"] + log.offsets["open"] if log else 0


CHECK = Check(name="hidden", claim=CLAIM, run=_judge, needs=(LOG, HIDDEN_RECORDS))
