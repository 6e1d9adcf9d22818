"""The one pass over what should be and what is: expected and actual outputs, compared for each number.

First by fingerprint, which needs no shuffle: when the outputs are just those that should be, and every input of theirs
is below the committed position, nothing is left to ask. Otherwise one hash aggregation; a number for which everything
fits at once (one due, one there, digest, destination and header as they should be, its input below the position) drops
out, and only suspects are left for the checks.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceproof.harness.model.workload import one_on_each
from onceproof.verifiers import inputs
from onceproof.verifiers.evidence import causes, fingerprints
from onceproof.verifiers.evidence.causes import KEY
from onceproof.verifiers.evidence.spark import rows, unless_empty
from onceproof.verifiers.evidence.tables import Tables, cached


@cached
def expected(tables: Tables) -> DataFrame:
    """One row an output that should be: topic, partition, number, digest, input (partition, offset, least)."""
    everything = tables.truth
    strange = inputs.strangers(tables)
    if strange is not None:
        everything = everything.unionByName(strange.withColumn("least", F.lit(1)))
    everything.withColumn("input", F.struct("partition", "offset", "least")).createOrReplaceTempView("inputs")
    return tables.spark.sql(tables.workload.expected)


@cached
def suspects(tables: Tables) -> DataFrame | None:
    """Topic and number of every output that does not fit, with the input's place; None when all fit."""
    if _all_fit(tables):  # speed: what follows finds nothing then
        return None
    nothing = F.lit(None).cast("bigint")
    should = expected(tables).select(
        *KEY,
        F.lit(1).alias("due"),
        F.lit(0).alias("there"),
        F.col("digest").alias("want"),
        nothing.alias("got"),
        F.col("partition").alias("to"),
        nothing.cast("int").alias("at"),
        F.col("input.partition").alias("from_p"),
        F.col("input.offset").alias("from_o"),
        nothing.cast("int").alias("told_p"),
        nothing.alias("told_o"),
    )
    there = causes.standing(tables).select(
        *KEY,
        F.lit(0).alias("due"),
        F.lit(1).alias("there"),
        nothing.alias("want"),
        F.col("digest").alias("got"),
        nothing.cast("int").alias("to"),
        F.col("partition").alias("at"),
        nothing.cast("int").alias("from_p"),
        nothing.alias("from_o"),
        F.col("source_partition").alias("told_p"),
        F.col("source_offset").alias("told_o"),
    )
    values = ("want", "got", "to", "at", "from_p", "from_o", "told_p", "told_o")
    return unless_empty(
        should.unionAll(there)
        .groupBy(*KEY)
        .agg(F.sum("due").alias("due"), F.sum("there").alias("there"), *(F.max(name).alias(name) for name in values))
        .join(F.broadcast(tables.positions_frame.withColumnRenamed("partition", "from_p")), "from_p", "left")
        .where(
            "NOT coalesce(due = 1 AND there = 1 AND want <=> got AND to <=> at AND from_p <=> told_p "
            "AND (from_o IS NULL OR from_o <=> told_o AND from_o < position), false)"
        )
        .select(*KEY, "from_p", "from_o", "position")
    )


def _all_fit(tables: Tables) -> bool:
    """Whether what is there is what should be, by fingerprint, and nothing of it is at or above its position. Then an
    output that is explained by a cause is the one of its number, and so nothing is missing without that cause."""
    due = _due(tables)  # first, since it may have to read the ledger for itself
    return fingerprints.of_kind(tables, "outputs") == due


def _due(tables: Tables) -> dict[tuple[str, int], fingerprints.Fingerprint] | None:
    """What should be there, as `summary.contents` says what is; None when some of it is not due yet."""
    found: dict[tuple[str, int], fingerprints.Fingerprint] = {}
    if _alike(tables):  # speed: the ledger has been read for that already
        for (_, partition), told in fingerprints.of_kind(tables, "ledger").items():
            if told.highest >= tables.positions.get(partition, 0):
                return None
            found |= {(topic, partition): told for topic in tables.workload.judged}
        return found
    made = fingerprints.fingerprint(fingerprints.output_row("input.partition", "input.offset"))
    highest = "coalesce(max(input.offset), -1L) AS highest"
    for each in rows(
        expected(tables)
        .where("input.offset IS NOT NULL OR input.least > 0")  # speed: others need not have an output
        .groupBy("topic", "partition", F.col("input.partition").alias("source"))
        .agg(*fingerprints.aggregates(*made, highest))
    ):
        if each["highest"] >= tables.positions.get(each["source"], 0):
            return None
        place = each["topic"], each["partition"]
        found[place] = found.get(place, fingerprints.NOTHING) + fingerprints.read(each)
    return found


def _alike(tables: Tables) -> bool:
    """Whether the outputs that should be are what the ledger acknowledges, record by record, on each topic."""
    if tables.workload.expected != one_on_each(*tables.workload.judged) or tables.unplaced:
        return False
    return tables.from_the_first and inputs.strangers(tables) is None


@cached
def fitting(tables: Tables) -> DataFrame:
    """The outputs that stand and are no suspects; `tables.outputs` itself when all fit."""
    return without_suspects(tables, causes.standing(tables))


@cached
def contiguous_ranges(tables: Tables) -> DataFrame:
    """Those in contiguous ranges."""
    outputs = fitting(tables)
    return (
        fingerprints.output_ranges(tables)
        if outputs is tables.outputs
        else fingerprints.contiguous_ranges(outputs).persist()
    )


def without_suspects(tables: Tables, outputs: DataFrame) -> DataFrame:
    wrong = suspects(tables)
    if wrong is None:
        return outputs
    same = F.expr("o.topic = s.topic AND o.number <=> s.number")
    return outputs.alias("o").join(wrong.alias("s"), same, "left_anti").persist()
