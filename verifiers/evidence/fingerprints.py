"""Passes over the tables that several checks share, each with a small result: what each partition's log holds, what the
readers saw, and the outputs in contiguous ranges.

A fingerprint is the number of rows and the sum of a 64-bit hash of each, kept exactly (its two halves apart). Equal
fingerprints mean equal bags of rows, up to one chance in 2^64; where they differ, a check looks at the rows themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from onceproof.verifiers.evidence.spark import rows, small
from onceproof.verifiers.evidence.tables import TRANSACTION, Tables, cached

# The digest of all of a record, which is what the observer keeps; a workload may compare its outputs by a part. (No
# column here: it would belong to the first Spark session of the process.)
ALL_OF_IT = "coalesce(content, digest)"
SPAN = 64  # offsets in a row of `sightings`: a bit for each
FATES = ("visible", "aborted", "control", "open")


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    rows: int
    low: int
    high: int
    highest: int = field(default=-1, compare=False)  # offset, of inputs

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
    """One replica of one partition: offsets by fate in [start, end), and its batches below the high watermark."""

    offsets: dict[str, int]
    batches: Fingerprint


@cached
def logs(tables: Tables) -> dict[tuple[str, int, str], Log]:
    """(topic, partition, broker) → Log."""
    pinned = small(
        tables.spark,
        [(p["topic"], p["partition"], p["start"], p["end"], p["high_watermark"]) for p in tables.pinned],
        "topic string, partition int, start bigint, end bigint, high bigint",
    )
    length = "greatest(0, least(end, last + 1) - greatest(start, first))"
    fates = (f"sum(CASE WHEN fate = '{fate}' THEN {length} ELSE 0 END) AS {fate}" for fate in FATES)
    found = rows(
        tables.batches.join(F.broadcast(pinned), ["topic", "partition"])  # speed: who compares them looks again
        .where("last >= start AND first < high")  # speed: as above
        .groupBy("topic", "partition", "broker")
        .agg(*aggregates(*fates, *fingerprint("first, last, producer_id, producer_epoch, sequence, crc")))
    )
    return {
        (r["topic"], r["partition"], r["broker"]): Log(offsets={fate: r[fate] for fate in FATES}, batches=read(r))
        for r in found
    }


@cached
def contents(tables: Tables) -> dict[tuple[str, str, int], Fingerprint]:
    """(what; the workload's own name of the topic; partition) → fingerprint, of what the rows say beside that.

    ledger               acknowledged inputs that are not below their partition's log start, since those are what
                         the log must hold
    inputs               the input topic; of the full proof only
    outputs              what must be as expected of them (`output_row`)
    at rest, observed    the outputs at their places, as collect and as the live observer saw them
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
    """The fingerprints of each partition, from those of parts of it; each kind with its columns' suffix."""
    sums = [f"sum({half}{suffix}) AS {half}{suffix}" for suffix in kinds.values() for half in ("low", "high")]
    each = ", ".join(f"'{kind}', rows, low{suffix}, high{suffix}" for kind, suffix in kinds.items())
    return (
        parts.groupBy("topic", "partition")
        .agg(*aggregates("sum(records) AS rows", *sums))
        .selectExpr("topic", "partition", "-1L AS highest", f"stack({len(kinds)}, {each}) AS (kind, rows, low, high)")
    )


def output_row(partition: str, offset: str) -> str:
    """What of an output must be as expected, in its partition: everything but its offset and who wrote it. The names
    are those of the columns with its input's place."""
    return f"number, digest, {partition}, {offset}"


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


def contiguous_ranges(outputs: DataFrame, *more: str) -> DataFrame:
    """Outputs in contiguous ranges: of one transaction and source partition, in one partition, with a constant
    difference between own and source offset. So a range is in order in itself, and there are few of them: a pipeline
    that copies has one for each transaction and partition. Each has the fingerprint of its rows (`output_row`), and
    `more`.

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
    """The contiguous ranges of all outputs, kept, since several checks use them."""
    at_rest = [] if tables.observed is None else fingerprint(f"offset, {ALL_OF_IT}", "_at_rest")[1:]
    return tables.gathered(contiguous_ranges(tables.outputs, *at_rest))


@cached
def sightings(tables: Tables) -> DataFrame | None:
    """What the live observer saw: a row for what it read at one time of SPAN offsets that follow one another; None when
    nobody watched. Columns: topic, partition, span (offset div SPAN), at, seen (a bit for each of them), records, low
    and high (of offset and digest)."""
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
    """The aggregates that make a fingerprint of these columns: rows, low and high, with a suffix. No sum can overflow
    below 2^31 rows."""
    return [
        "count(*) AS rows",
        f"sum(xxhash64({row}) & 4294967295L) AS low{suffix}",
        f"sum(shiftright(xxhash64({row}), 32)) AS high{suffix}",
    ]


def aggregates(*sql: str) -> list[Column]:
    """Columns of Spark SQL: what `pyspark.sql.functions` would say in as many questions to the JVM as it has words."""
    return [F.expr(each) for each in sql]


def read(row: Any) -> Fingerprint:
    return Fingerprint(rows=row["rows"], low=row["low"], high=row["high"])
