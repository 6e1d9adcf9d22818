"""Compare the expected with the actual outputs, for each topic and number; those that do not fit are suspects.

The first comparison is by fingerprint and needs no shuffle: if the actual outputs are exactly the expected ones, and
all their inputs are below the committed offset, there are no suspects. Otherwise one hash aggregation compares them. A
number fits if there is one expected and one actual output, if digest, partition and header agree, and if the input is
below the committed offset. All other numbers are suspects, which the checks examine.
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
    """Return one row for each expected output: topic, partition, number, digest, input (partition, offset, least).

    `least` is 1 if the output must exist, 0 if it may be absent.
    """
    everything = tables.truth
    strange = inputs.strangers(tables)
    if strange is not None:
        everything = everything.unionByName(strange.withColumn("least", F.lit(1)))
    everything.withColumn("input", F.struct("partition", "offset", "least")).createOrReplaceTempView("inputs")
    return tables.spark.sql(tables.workload.expected)


@cached
def suspects(tables: Tables) -> DataFrame | None:
    """Return the topics and numbers whose outputs do not fit; None if all fit.

    Columns: topic, number, from_p and from_o (the input's partition and offset), position (the committed offset of
    that partition).
    """
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
    """Return whether the actual outputs are the expected ones, by fingerprint, and their inputs are all committed.

    If so, an output that another finding explains is the only output of its number, so nothing else is missing.
    """
    due = _due(tables)  # comes first, since it may read the ledger itself
    return fingerprints.of_kind(tables, "outputs") == due


def _due(tables: Tables) -> dict[tuple[str, int], fingerprints.Fingerprint] | None:
    """Return the fingerprints of the expected outputs: (topic, partition) → fingerprint, as in `fingerprints.of_kind`.

    None if the input of an expected output is at or above the committed offset.
    """
    found: dict[tuple[str, int], fingerprints.Fingerprint] = {}
    if _alike(tables):  # speed: the fingerprints of the ledger are there already
        for (_, partition), told in fingerprints.of_kind(tables, "ledger").items():
            if told.highest >= tables.positions.get(partition, 0):
                return None
            found |= {(topic, partition): told for topic in tables.workload.judged}
        return found
    made = fingerprints.fingerprint(fingerprints.output_row("input.partition", "input.offset"))
    highest = "coalesce(max(input.offset), -1L) AS highest"
    for each in rows(
        expected(tables)
        .where("input.offset IS NOT NULL OR input.least > 0")  # speed: other inputs need not have an output
        .groupBy("topic", "partition", F.col("input.partition").alias("source"))
        .agg(*fingerprints.aggregates(*made, highest))
    ):
        if each["highest"] >= tables.positions.get(each["source"], 0):
            return None
        place = each["topic"], each["partition"]
        found[place] = found.get(place, fingerprints.NOTHING) + fingerprints.read(each)
    return found


def _alike(tables: Tables) -> bool:
    """Return whether the expected outputs on each topic are copies of the acknowledged inputs in the ledger."""
    if tables.workload.expected != one_on_each(*tables.workload.judged) or tables.unplaced:
        return False
    return tables.from_the_first and inputs.strangers(tables) is None


@cached
def fitting(tables: Tables) -> DataFrame:
    """Return the outputs that no finding explains and that are not suspects; `tables.outputs` itself if all fit."""
    return without_suspects(tables, causes.standing(tables))


@cached
def contiguous_ranges(tables: Tables) -> DataFrame:
    """Return the contiguous ranges of the fitting outputs (`fingerprints.contiguous_ranges`)."""
    outputs = fitting(tables)
    return (
        fingerprints.output_ranges(tables)
        if outputs is tables.outputs
        else fingerprints.contiguous_ranges(outputs).persist()
    )


def without_suspects(tables: Tables, outputs: DataFrame) -> DataFrame:
    """Return the outputs in `outputs` that are not suspects; `outputs` itself if there are no suspects."""
    wrong = suspects(tables)
    if wrong is None:
        return outputs
    same = F.expr("o.topic = s.topic AND o.number <=> s.number")
    return outputs.alias("o").join(wrong.alias("s"), same, "left_anti").persist()
