"""Two passes over the tables that several checks share: what each partition's log holds, and what the readers saw.

`logs` is from the batches: offsets by fate for each replica. `contents` is from the records: how many, and a
fingerprint of all of them. Equal fingerprints (count, and both sum and xor of a 64-bit hash of each row) mean equal
sets of rows; where they differ, a check looks at the rows themselves.
"""

from dataclasses import dataclass
from functools import lru_cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from verifiers.spark import rows
from verifiers.tables import Tables

FATES = ("visible", "aborted", "control", "open")


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    rows: int
    xor: int
    sum: int


@dataclass(frozen=True, kw_only=True)
class Log:
    """One replica of one partition: offsets by fate in [start, end), and its batches below the high watermark."""

    offsets: dict[str, int]
    batches: Fingerprint


NOTHING = Fingerprint(rows=0, xor=0, sum=0)


@lru_cache(maxsize=2)
def logs(tables: Tables) -> dict[tuple[str, int, str], Log]:
    """(topic, partition, broker) → Log."""
    pinned = tables.spark.createDataFrame(
        [(p["topic"], p["partition"], p["start"], p["end"], p["high_watermark"]) for p in tables.pinned],
        "topic string, partition int, start bigint, end bigint, high bigint",
    )
    length = F.greatest(F.lit(0), F.least("end", F.col("last") + 1) - F.greatest("start", "first"))
    row = F.xxhash64("first", "last", "producer_id", "producer_epoch", "sequence", "crc")
    found = rows(
        tables.batches.join(F.broadcast(pinned), ["topic", "partition"])
        .where("last >= start AND first < high")
        .groupBy("topic", "partition", "broker")
        .agg(*(F.sum(F.when(F.col("fate") == fate, length).otherwise(0)).alias(fate) for fate in FATES), *_print(row))
    )
    return {
        (r["topic"], r["partition"], r["broker"]): Log(
            offsets={fate: r[fate] for fate in FATES},
            batches=Fingerprint(rows=r["rows"], xor=r["xor"], sum=int(r["sum"])),
        )
        for r in found
    }


@lru_cache(maxsize=2)
def contents(tables: Tables) -> dict[tuple[str, str, int], Fingerprint]:
    """(`inputs`, `ledger` or `outputs`; topic; partition) → fingerprint. Of the ledger: acknowledged inputs that are
    not below their partition's log start, since those are what the log must hold."""
    row = F.xxhash64("partition", "offset", "number", "digest")

    def kind(frame: DataFrame, name: str, topic: Column) -> DataFrame:
        return frame.select(F.lit(name).alias("kind"), topic.alias("topic"), "partition", row.alias("row"))

    found = rows(
        kind(held(tables), "ledger", F.lit(tables.input_topic))
        .unionAll(kind(tables.inputs, "inputs", F.lit(tables.input_topic)))
        .unionAll(kind(tables.outputs, "outputs", F.concat(F.lit(tables.topic("")), "topic")))
        .groupBy("kind", "topic", "partition")
        .agg(*_print(F.col("row")))
    )
    return {
        (r["kind"], r["topic"], r["partition"]): Fingerprint(rows=r["rows"], xor=r["xor"], sum=int(r["sum"]))
        for r in found
    }


def held(tables: Tables) -> DataFrame:
    """Acknowledged inputs that are not below their partition's log start: what the log must hold."""
    starts = tables.spark.createDataFrame(
        [(each["partition"], each["start"]) for each in tables.pinned if each["topic"] == tables.input_topic],
        "partition int, start bigint",
    )
    return tables.ledger.where("offset IS NOT NULL").join(F.broadcast(starts), "partition").where("offset >= start")


def log_holds_the_ledger(tables: Tables) -> bool:
    """Whether the input log holds just what was acknowledged, by fingerprint, in every partition."""
    found = contents(tables)
    return all(
        found.get(("ledger", tables.input_topic, each["partition"]))
        == found.get(("inputs", tables.input_topic, each["partition"]))
        for each in tables.pinned if each["topic"] == tables.input_topic
    )  # fmt: skip


def _print(row: Column) -> list[Column]:
    return [
        F.count("*").alias("rows"),
        F.bit_xor(row).alias("xor"),
        F.sum(row.cast("decimal(38,0)")).alias("sum"),
    ]
