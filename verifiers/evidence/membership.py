"""Say in which transaction of the log each output and each committed offset is.

The batch that holds an output names its producer and the marker that ended its transaction, and so does the batch that
holds a committed offset; `spans` gives the coordinator's decision for both. What workers say of their transactions, in
headers and metadata, is not used here.

    output/3 offsets 10..19, from input/3 offsets 40..49      batch of producer 4000, marker 21      decision 7
    committed offset 50 of input/3                            batch of producer 4000, marker 93      decision 7

A stage is one read-process-write step: its outputs, with the place of the record that each was made from, and the
commits of its group. A pipeline has one stage; a chain has two, and the first one's outputs are the records of the
intermediate topic, as the headers at the end of the chain name them.
"""

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from onceproof.verifiers import atomicity
from onceproof.verifiers.evidence import spans, suspects
from onceproof.verifiers.evidence.cached import cached
from onceproof.verifiers.evidence.fingerprints import contiguous_ranges
from onceproof.verifiers.evidence.tables import TRANSACTION, Tables

BUCKET = 256  # offsets; ranges of offsets are joined by equal buckets


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A stage: the topic on the cluster that it reads, its outputs, and the pieces of them.

    The outputs have `PLACE`, number, source_partition, source_offset and `TRANSACTION`. They are those that no finding
    explains, and that are no suspects. The pieces lie in one batch each; their columns are topic, partition,
    source_partition, worker, incarnation, transaction, first, last, source_first, source_last, transactional, and tx
    (the number of the decision; null if none is known).
    """

    reads: str
    outputs: DataFrame
    pieces: DataFrame


@cached
def stages(tables: Tables) -> list[Stage]:
    """Return the stages of the pipeline, the one that writes the judged topics last."""
    middle, last = tables.workload.intermediate_topic, suspects.fitting(tables)
    if not middle:
        made = _pieces(tables, last, suspects.contiguous_ranges(tables))
        return [Stage(reads=tables.input_topic, outputs=last, pieces=made)]
    unknown = {name: F.lit(None).cast("int") for name in TRANSACTION}
    at = {"topic": F.lit(middle), "partition": F.col("intermediate_partition"), "offset": F.col("intermediate_offset")}
    first = last.withColumns({**at, **unknown})
    read = {"source_partition": F.col("intermediate_partition"), "source_offset": F.col("intermediate_offset")}
    last = last.withColumns(read)
    before, made = (_pieces(tables, each, tables.gathered(contiguous_ranges(each))) for each in (first, last))
    return [
        Stage(reads=tables.input_topic, outputs=first, pieces=_told(tables, before)),
        Stage(reads=tables.topic(middle), outputs=last, pieces=made),
    ]


def pieces(tables: Tables) -> DataFrame:
    """Return the pieces of all stages: topic, partition, first, last, those of `TRANSACTION`, and tx."""
    columns = ["topic", "partition", "first", "last", *TRANSACTION, "tx"]
    return reduce(DataFrame.unionAll, (each.pieces.select(*columns) for each in stages(tables)))


def _pieces(tables: Tables, outputs: DataFrame, ranges: DataFrame) -> DataFrame:
    """Return the pieces of these outputs, as `Stage` describes them, from their contiguous ranges."""
    lane = ["topic", "partition", "source_partition", *TRANSACTION]
    ranges = ranges.select(*lane, "shift", "records", "first", "last")
    pieces = ranges.where("records = last - first + 1").drop("records")
    holed = ranges.where("records != last - first + 1").select(*lane, "shift")
    if not holed.isEmpty():  # speed: what follows adds nothing then
        # Batches of other producers may lie in the holes of such a range, so its outputs are pieces themselves.
        alike = reduce(Column.__and__, (F.col(f"s.{name}").eqNullSafe(F.col(f"h.{name}")) for name in [*lane, "shift"]))
        shifted = outputs.selectExpr(*lane, "offset", "offset - source_offset AS shift")
        single = shifted.alias("s").join(tables.few(holed).alias("h"), alike, "left_semi")
        pieces = pieces.unionByName(single.selectExpr(*lane, "shift", "offset AS first", "offset AS last"))
    buckets = f"explode(sequence(first div {BUCKET}, last div {BUCKET})) AS bucket"
    batches = tables.log.where("control IS NULL AND fate = 'visible'")  # speed: no output is in any other batch
    batches = batches.join(tables.few(_owners(tables)), ["topic", "partition", "producer_id", "marker"], "left")
    batches = batches.selectExpr("topic", "partition", "first AS low", "last AS high", "transactional", "tx", buckets)
    both = pieces.selectExpr("*", buckets).join(tables.few(batches), ["topic", "partition", "bucket"])
    inside = both.withColumns({"low": F.greatest("first", "low"), "high": F.least("last", "high")}).where(
        f"low <= high AND low div {BUCKET} = bucket"
    )
    placed = inside.selectExpr(
        *lane,
        "low AS first",
        "high AS last",
        "low - shift AS source_first",
        "high - shift AS source_last",
        "transactional",
        "tx",
    )
    return tables.gathered(placed)


def _told(tables: Tables, pieces: DataFrame) -> DataFrame:
    """Return the pieces of records without headers, with the transactions of the manifests that list them.

    A manifest lists the range of offsets in which its records are; the one at the first offset says in which decision.
    """
    lane = ["topic", "partition"]
    parts = atomicity.told_parts(tables).drop("records").withColumnsRenamed({"first": "begin", "last": "until"})
    bare = pieces.drop(*TRANSACTION)
    begun = bare.select(*lane, "tx", F.col("first").alias("low"), F.col("last").alias("high"))
    of = parts.join(tables.few(begun), lane).where("begin BETWEEN low AND high").drop("low", "high")
    whose = bare.alias("b").join(
        tables.few(of).alias("m"),
        F.expr("b.partition = m.partition AND b.tx = m.tx AND b.first BETWEEN begin AND until"),
        "left",
    )
    return tables.gathered(whose.select("b.*", *TRANSACTION))


def _owners(tables: Tables) -> DataFrame:
    """Return `spans.owners` with the workload's own names of the topics."""
    return spans.owners(tables).withColumn("topic", tables.role_of(F.col("topic")))


@cached
def commits(tables: Tables) -> DataFrame:
    """Return `tables.all_commits` with `tx`, the number of the decision that ended their transaction."""
    owners = spans.owners(tables).where(F.col("topic") == spans.OFFSETS)
    mine = owners.selectExpr("partition AS log", "producer_id", "marker", "tx")
    return tables.gathered(tables.all_commits.join(tables.few(mine), ["log", "producer_id", "marker"], "left"))


def setters(tables: Tables, reads: str) -> DataFrame:
    """Return the commits that moved the committed offset of a partition of `reads` forward, as they stand in the log.

    Commits whose transaction is open count, since it may still be committed. Columns: source_partition, before and
    position (the commit was the first to cover the offsets in [before, position)), log and offset (its place), tx, and
    those of `TRANSACTION`.
    """
    earlier = "OVER (PARTITION BY partition ORDER BY offset ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    end = max(each["high_watermark"] for each in tables.pinned)
    mine = commits(tables).where((F.col("topic") == reads) & F.expr("fate IN ('visible', 'open')"))
    mine = mine.withColumn("position", F.least("position", F.lit(end)))  # beyond every end there is nothing to cover
    return mine.selectExpr(
        "partition AS source_partition",
        f"coalesce(max(position) {earlier}, 0) AS before",
        "position",
        "log",
        "offset",
        "tx",
        *TRANSACTION,
    ).where("position > before")
