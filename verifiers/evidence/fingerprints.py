"""Reduce the tables to small results that several checks share.

These are, for each partition, the content of the log and of the readers' tables as fingerprints, and the outputs as
contiguous ranges.

A fingerprint is the number of rows and the exact sum of a 64-bit hash of each row, kept as the sums of the hashes' two
halves. Equal fingerprints mean equal multisets of rows, except with a probability of about 2^−64; if two fingerprints
differ, a check examines the rows themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from onceproof.verifiers.evidence.cached import cached
from onceproof.verifiers.evidence.frames import rows, small
from onceproof.verifiers.evidence.tables import TRANSACTION, Tables

# The digest of the whole record, which is the digest that the observer keeps; `digest` may cover a part of the record,
# if the workload compares only that. (This is SQL since a Column would belong to the first Spark session of a process.)
ALL_OF_IT = "coalesce(content, digest)"
SPAN = 64  # the number of offsets in a row of `sightings`, one bit each
# What replicas must agree on. A batch whose bytes do not have its CRC is a different one.
BATCH = "first, last, producer_id, producer_epoch, sequence, crc, coalesce(intact, true)"
FATES = ("visible", "aborted", "control", "open")


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """The fingerprint of a set of rows: their number, and the sums of the lower and upper halves of their hashes.

    `highest` is the highest input offset among them (−1: none, or not computed); it does not count in comparisons.
    """

    rows: int
    low: int
    high: int
    highest: int = field(default=-1, compare=False)

    def __add__(self, other: "Fingerprint") -> "Fingerprint":
        return Fingerprint(
            rows=self.rows + other.rows,
            low=self.low + other.low,
            high=self.high + other.high,
            highest=max(self.highest, other.highest),
        )


NOTHING = Fingerprint(rows=0, low=0, high=0)


@dataclass(frozen=True, kw_only=True)
class Log:
    """The log of one replica: the number of offsets in [start, end) by fate; its batches below the high watermark."""

    offsets: dict[str, int]
    batches: Fingerprint


@cached
def logs(tables: Tables) -> dict[tuple[str, int, str], Log]:
    """Return the log of every replica of every judged partition: (topic, partition, broker) → Log."""
    pinned = small(
        tables.spark,
        [(p["topic"], p["partition"], p["start"], p["end"], p["high_watermark"]) for p in tables.pinned],
        "topic string, partition int, start bigint, end bigint, high bigint",
    )
    length = "greatest(0, least(end, last + 1) - greatest(start, first))"
    fates = (f"sum(CASE WHEN fate = '{fate}' THEN {length} ELSE 0 END) AS {fate}" for fate in FATES)
    found = rows(
        tables.batches.join(F.broadcast(pinned), ["topic", "partition"])  # speed: `replicas` filters the batches again
        .where("last >= start AND first < high")  # speed: as above
        .groupBy("topic", "partition", "broker")
        .agg(*aggregates(*fates, *fingerprint(BATCH)))
    )
    return {
        (r["topic"], r["partition"], r["broker"]): Log(offsets={fate: r[fate] for fate in FATES}, batches=read(r))
        for r in found
    }


@cached
def contents(tables: Tables) -> dict[tuple[str, str, int], Fingerprint]:
    """Return the readers' tables: (kind, the workload's own name of the topic, partition) → fingerprint.

    ledger               the acknowledged inputs at or above their partition's log start, which the log must hold
    inputs               the input topic; full proof only
    outputs              the columns of the outputs that must be as expected (`output_row`)
    at rest, observed    the outputs with their offsets, as collect and as the live observer read them
    """
    seen, there = sightings(tables), output_ranges(tables)
    if seen is None:
        kinds = [_sums(there, {"outputs": ""})]
    else:
        kinds = [_sums(there, {"outputs": "", "at rest": "_at_rest"}), _sums(seen, {"observed": ""})]
    for name, frame in [("ledger", held(tables)), *([("inputs", tables.inputs)] if tables.full else [])]:
        made = aggregates(*fingerprint(output_row("partition", "offset")), "max(offset) AS highest")
        kinds.append(frame.groupBy("partition").agg(*made).selectExpr(f"'{name}' AS kind", "'input' AS topic", "*"))
    found = rows(reduce(DataFrame.unionByName, kinds))
    return {(r["kind"], r["topic"], r["partition"]): replace(read(r), highest=r["highest"]) for r in found}


def _sums(parts: DataFrame, kinds: Mapping[str, str]) -> DataFrame:
    """Return the fingerprints of partitions from those of their parts; `kinds` maps a kind to its columns' suffix."""
    sums = [f"sum({half}{suffix}) AS {half}{suffix}" for suffix in kinds.values() for half in ("low", "high")]
    each = ", ".join(f"'{kind}', rows, low{suffix}, high{suffix}" for kind, suffix in kinds.items())
    return (
        parts.groupBy("topic", "partition")
        .agg(*aggregates("sum(records) AS rows", *sums))
        .selectExpr("topic", "partition", "-1L AS highest", f"stack({len(kinds)}, {each}) AS (kind, rows, low, high)")
    )


def output_row(partition: str, offset: str) -> str:
    """Return Spark SQL for the columns of an output that must be as expected, all but its own offset and its writer.

    `partition` and `offset` name the columns with the place of its input.
    """
    return f"number, digest, {partition}, {offset}"


def held(tables: Tables) -> DataFrame:
    """Return the rows of the ledger that the log must hold: acknowledged inputs at or above their log start."""
    if tables.from_the_first:  # speed
        return tables.ledger.where("offset IS NOT NULL")
    starts = tables.starts.where("topic = 'input'").drop("topic")
    return tables.ledger.join(F.broadcast(starts), "partition").where("offset >= start")


def of_kind(tables: Tables, kind: str) -> dict[tuple[str, int], Fingerprint]:
    """Return the fingerprints of one of the kinds in `contents`: (topic, partition) → fingerprint."""
    return {(topic, partition): each for (what, topic, partition), each in contents(tables).items() if what == kind}


def same(tables: Tables, one: str, other: str) -> bool:
    """Return whether two of the kinds in `contents` have the same fingerprint in every partition."""
    return of_kind(tables, one) == of_kind(tables, other)


def contiguous_ranges(outputs: DataFrame, *more: str) -> DataFrame:
    """Return the outputs in contiguous ranges, one row each.

    The outputs of a range belong to one transaction, source partition and output partition, and have the same
    difference between their own and their source offset, so they are in order. A pipeline that copies has one range
    for each transaction and partition. A row has the fingerprint of its outputs (`output_row`), and the aggregates in
    `more` (Spark SQL).

        output/3 offsets 10 11 12, from input/3 offsets 7 8 9        one range: 10..12 from 7..9
    """
    made = aggregates(
        "count(*) AS records",
        "min(offset) AS first",
        "max(offset) AS last",
        "min(source_offset) AS source_first",
        "max(source_offset) AS source_last",
        *fingerprint(output_row("source_partition", "source_offset"))[1:],
        *more,
    )
    shift = F.expr("offset - source_offset AS shift")
    return outputs.groupBy("topic", "partition", "source_partition", *TRANSACTION, shift).agg(*made)


@cached
def output_ranges(tables: Tables) -> DataFrame:
    """Return the contiguous ranges of all outputs, kept in memory since several checks use them."""
    at_rest = [] if tables.observed is None else fingerprint(f"offset, {ALL_OF_IT}", "_at_rest")[1:]
    return tables.gathered(contiguous_ranges(tables.outputs, *at_rest))


@cached
def sightings(tables: Tables) -> DataFrame | None:
    """Return what the live observer read, one row for each span of SPAN offsets and time; None without an observer.

    Columns: topic, partition, span (offset div SPAN), at, seen (one bit for each offset that it read at that time),
    records, low and high (the fingerprint of offset and digest).
    """
    if tables.observed is None:
        return None
    made = aggregates(
        f"bit_or(shiftleft(1L, cast(offset % {SPAN} AS int))) AS seen",
        "count(*) AS records",
        *fingerprint("offset, digest")[1:],
    )
    lane = "topic", "partition", F.expr(f"offset div {SPAN} AS span"), "at"
    return tables.gathered(tables.observed.groupBy(*lane).agg(*made))


def fingerprint(row: str, suffix: str = "") -> list[str]:
    """Return Spark SQL for the aggregates rows, low and high of a fingerprint over the columns in `row`.

    `suffix` is appended to the names low and high. The sums cannot overflow below 2^31 rows.
    """
    return [
        "count(*) AS rows",
        f"sum(xxhash64({row}) & 4294967295L) AS low{suffix}",
        f"sum(shiftright(xxhash64({row}), 32)) AS high{suffix}",
    ]


def aggregates(*sql: str) -> list[Column]:
    """Return columns from Spark SQL, with one call to the JVM each; `pyspark.sql.functions` needs many."""
    return [F.expr(each) for each in sql]


def read(row: Any) -> Fingerprint:
    """Return the fingerprint in a row with the columns rows, low and high."""
    return Fingerprint(rows=row["rows"], low=row["low"], high=row["high"])
