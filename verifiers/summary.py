"""Passes over the tables that several checks share, each with a small result: what each partition's log holds, what the
readers saw, and the outputs in stretches.

A fingerprint is the number of rows and the sum of a 64-bit hash of each, kept exactly (its two halves apart). Equal
fingerprints mean equal bags of rows, up to one chance in 2^64; where they differ, a check looks at the rows themselves.
"""

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from verifiers.spark import rows, small
from verifiers.tables import TRANSACTION, Tables, kept

# The digest of all of a record, which is what the observer keeps; a workload may compare its outputs by a part. (No
# column here: it would belong to the first Spark session of the process.)
ALL_OF_IT = "coalesce(content, digest)"
FATES = ("visible", "aborted", "control", "open")


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    rows: int
    low: int
    high: int
    highest: int = field(default=-1, compare=False)  # offset, of inputs

    def __add__(self, other: "Fingerprint") -> "Fingerprint":
        return Fingerprint(rows=self.rows + other.rows, low=self.low + other.low, high=self.high + other.high,
                           highest=max(self.highest, other.highest))  # fmt: skip


NOTHING = Fingerprint(rows=0, low=0, high=0)


@dataclass(frozen=True, kw_only=True)
class Log:
    """One replica of one partition: offsets by fate in [start, end), and its batches below the high watermark."""

    offsets: dict[str, int]
    batches: Fingerprint


@kept
def logs(tables: Tables) -> dict[tuple[str, int, str], Log]:
    """(topic, partition, broker) → Log."""
    pinned = small(
        tables.spark,
        [(p["topic"], p["partition"], p["start"], p["end"], p["high_watermark"]) for p in tables.pinned],
        "topic string, partition int, start bigint, end bigint, high bigint",
    )
    length = F.greatest(F.lit(0), F.least("end", F.col("last") + 1) - F.greatest("start", "first"))
    row = F.xxhash64("first", "last", "producer_id", "producer_epoch", "sequence", "crc")
    found = rows(
        tables.batches.join(F.broadcast(pinned), ["topic", "partition"])  # speed: who compares them looks again
        .where("last >= start AND first < high")
        .groupBy("topic", "partition", "broker")
        .agg(*(F.sum(F.when(F.col("fate") == fate, length).otherwise(0)).alias(fate) for fate in FATES),
             *fingerprint(row))
    )  # fmt: skip
    return {
        (r["topic"], r["partition"], r["broker"]): Log(offsets={fate: r[fate] for fate in FATES}, batches=read(r))
        for r in found
    }


@kept
def contents(tables: Tables) -> dict[tuple[str, str, int], Fingerprint]:
    """(what; the workload's own name of the topic; partition) → fingerprint, of what the rows say beside that.

        ledger               acknowledged inputs that are not below their partition's log start, since those are what
                             the log must hold
        inputs               the input topic; of the full proof only
        outputs              what must be as expected of them (`output_row`)
        at rest, observed    the outputs at their places, as collect and as the live observer saw them
    """
    kinds = [_of_stretches(tables, "outputs", "low", "high")]
    if tables.observed is not None:
        kinds += [
            _of_stretches(tables, "at rest", "low_at_rest", "high_at_rest"),
            tables.observed.groupBy(F.lit("observed").alias("kind"), "topic", "partition").agg(
                *fingerprint(F.xxhash64("offset", "digest"))
            ),
        ]  # fmt: skip
    kinds = [kind.withColumn("highest", F.lit(-1)) for kind in kinds]
    for name, frame in [("ledger", held(tables)), *([("inputs", tables.inputs)] if tables.full else [])]:
        place = F.lit(name).alias("kind"), F.lit("input").alias("topic"), "partition"
        row = output_row("partition", "offset")
        kinds.append(frame.groupBy(*place).agg(*fingerprint(row), F.max("offset").alias("highest")))
    found = rows(reduce(DataFrame.unionAll, kinds))
    return {(r["kind"], r["topic"], r["partition"]): replace(read(r), highest=r["highest"]) for r in found}


def _of_stretches(tables: Tables, kind: str, low: str, high: str) -> DataFrame:
    return output_stretches(tables).groupBy(F.lit(kind).alias("kind"), "topic", "partition").agg(
        F.sum("records").alias("rows"), F.sum(low).alias("low"), F.sum(high).alias("high")
    )  # fmt: skip


def output_row(partition: str, offset: str) -> Column:
    """What of an output must be as expected, in its partition: everything but its offset and who wrote it. The names
    are those of the columns with its input's place."""
    return F.xxhash64("number", "digest", partition, offset)


def held(tables: Tables) -> DataFrame:
    """Acknowledged inputs that are not below their partition's log start: what the log must hold."""
    if tables.from_the_first:  # speed
        return tables.ledger.where("offset IS NOT NULL")
    starts = tables.starts.where("topic = 'input'").drop("topic")
    return tables.ledger.join(F.broadcast(starts), "partition").where("offset >= start")


def of_kind(tables: Tables, kind: str) -> dict[tuple[str, int], Fingerprint]:
    """One of the kinds in `contents`: (topic, partition) → fingerprint."""
    return {(topic, partition): each for (what, topic, partition), each in contents(tables).items() if what == kind}


def same(tables: Tables, one: str, other: str) -> bool:
    """Whether two of the kinds in `contents` have the same in every partition, by fingerprint."""
    return of_kind(tables, one) == of_kind(tables, other)


def stretches(outputs: DataFrame, *more: Column) -> DataFrame:
    """Outputs in stretches: of one transaction and source partition, in one partition, at a constant distance between
    source offset and own offset. So a stretch is in order in itself, and there are few of them: a pipeline that copies
    has one for each transaction and partition. Each has the fingerprint of its rows (`output_row`), and `more`.

        output/3 offsets 10 11 12, from input/3 offsets 7 8 9        one stretch: 10..12 from 7..9
    """
    shift = (F.col("offset") - F.col("source_offset")).alias("shift")
    return outputs.groupBy("topic", "partition", "source_partition", *TRANSACTION, shift).agg(
        F.count("*").alias("records"), F.min("offset").alias("first"), F.max("offset").alias("last"),
        F.min("source_offset").alias("source_first"), F.max("source_offset").alias("source_last"),
        *fingerprint(output_row("source_partition", "source_offset"))[1:], *more,
    )  # fmt: skip


@kept
def output_stretches(tables: Tables) -> DataFrame:
    """The stretches of all outputs, kept, since several checks use them."""
    if tables.observed is None:
        return stretches(tables.outputs).persist()
    _, low, high = fingerprint(F.xxhash64("offset", F.expr(ALL_OF_IT)))
    return stretches(tables.outputs, low.alias("low_at_rest"), high.alias("high_at_rest")).persist()


def fingerprint(row: Column) -> list[Column]:
    """The aggregates that make a fingerprint of a column of 64-bit hashes; no sum can overflow below 2^31 rows."""
    return [
        F.count("*").alias("rows"),
        F.sum(row.bitwiseAND(0xFFFFFFFF)).alias("low"),
        F.sum(F.shiftright(row, 32)).alias("high"),
    ]


def read(row: Any) -> Fingerprint:
    return Fingerprint(rows=row["rows"], low=row["low"], high=row["high"])
