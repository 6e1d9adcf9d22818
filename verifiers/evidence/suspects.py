"""Compare the expected with the actual outputs, for each topic and number; those that do not fit are suspects.

The first comparison is by fingerprint and needs no shuffle: if the actual outputs are exactly the expected ones, and
all their inputs are below the committed offset, there are no suspects. Otherwise one hash aggregation compares them, by
topic, number, digest and partition. They fit if there are as many actual outputs as there may and must be, all of one
input, which all their headers name and which is below the committed offset. A number of which some outputs do not fit
is a suspect, which the checks examine.
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceproof.harness.model.workload import one_on_each
from onceproof.verifiers import inputs
from onceproof.verifiers.evidence import causes, fingerprints, modelled, views
from onceproof.verifiers.evidence.cached import cached
from onceproof.verifiers.evidence.causes import KEY
from onceproof.verifiers.evidence.frames import rows
from onceproof.verifiers.evidence.tables import Tables

_PAYLOAD = [*KEY, "digest", "partition"]
_NONE = -1  # the offset of an input that the ledger does not have, or of an output without a header


@cached
def expected(tables: Tables) -> DataFrame:
    """Return the expected outputs of all inputs, as `outputs_of`."""
    everything = tables.truth
    strange = inputs.strangers(tables)
    if strange is not None:
        everything = everything.unionByName(strange.withColumn("least", F.lit(1)))
    return outputs_of(tables, everything)


def outputs_of(tables: Tables, some: DataFrame) -> DataFrame:
    """Return one row for each expected output of these inputs: topic, partition, number, digest, input.

    `some` has the columns of `tables.truth`. `input` is the partition, offset and least of the input; `least` is 1 if
    the output must exist, 0 if it may be absent.
    """
    named = some.withColumn("input", F.struct("partition", "offset", "least"))
    return views.query(tables.spark, tables.workload.expected, inputs=named, **modelled.views_of(tables))


@cached
def suspects(tables: Tables) -> DataFrame | None:
    """Return the topics and numbers whose outputs do not fit; None if all fit, or if no output names its input.

    Columns: topic, number, from_p and from_o (the input's partition and offset), position (the committed offset of
    that partition), and missing (whether an output that must exist is not there).
    """
    if not tables.workload.identified:
        return None
    if _all_fit(tables):  # speed: what follows finds nothing then
        return None
    nothing = F.lit(None).cast("bigint")
    lane = F.expr(tables.lane).alias("partition")
    should = expected(tables).select(
        *KEY,
        "digest",
        lane,
        F.lit(0).alias("there"),
        F.lit(1).alias("due"),
        F.col("input.least").alias("least"),
        F.col("input.partition").alias("from_p"),
        F.coalesce("input.offset", F.lit(_NONE)).alias("from_o"),
        nothing.cast("int").alias("told_p"),
        nothing.alias("told_o"),
    )
    there = causes.standing(tables).select(
        *KEY,
        "digest",
        lane,
        F.lit(1).alias("there"),
        F.lit(0).alias("due"),
        F.lit(0).alias("least"),
        nothing.cast("int").alias("from_p"),
        nothing.alias("from_o"),
        F.coalesce("source_partition", F.lit(_NONE)).alias("told_p"),
        F.coalesce("source_offset", F.lit(_NONE)).alias("told_o"),
    )
    names = ("from_p", "from_o", "told_p", "told_o")
    together = should.unionAll(there).groupBy(*_PAYLOAD)
    one_input = " AND ".join(f"lowest_{name} = {name}" for name in names)
    return tables.unless_empty(
        together.agg(
            *(F.sum(name).alias(name) for name in ("there", "due", "least")),
            *(F.min(name).alias(f"lowest_{name}") for name in names),
            *(F.max(name).alias(name) for name in names),
        )
        .join(F.broadcast(tables.positions_frame.withColumnRenamed("partition", "from_p")), "from_p", "left")
        .where(
            f"NOT coalesce(least <= there AND there <= due AND (there = 0 OR {one_input} AND from_p = told_p "
            f"AND (from_o = {_NONE} OR from_o = told_o AND from_o < position)), false)"
        )
        .groupBy(*KEY)
        .agg(
            F.max("from_p").alias("from_p"),
            F.expr(f"max(nullif(from_o, {_NONE})) AS from_o"),
            F.max("position").alias("position"),
            F.expr("max(there < least) AS missing"),
        )
    )


def _all_fit(tables: Tables) -> bool:
    """Return whether the actual outputs are the expected ones, by fingerprint, and their inputs are all committed.

    If so, an output that another finding explains is the only output of its number, so nothing else is missing.
    """
    due = _due(tables)  # comes first, since it may read the ledger itself
    there = fingerprints.of_kind(tables, "outputs")
    return (there if tables.workload.placed else _by_topic(there)) == due  # speed


def _by_topic(
    found: Mapping[tuple[str, int], fingerprints.Fingerprint],
) -> dict[tuple[str, int], fingerprints.Fingerprint]:
    """Return the fingerprints of whole topics, as the partition -1."""
    topics: dict[tuple[str, int], fingerprints.Fingerprint] = {}
    for (topic, _), each in found.items():
        topics[topic, -1] = topics.get((topic, -1), fingerprints.NOTHING) + each
    return topics


def _due(tables: Tables) -> dict[tuple[str, int], fingerprints.Fingerprint] | None:
    """Return the fingerprints of the expected outputs: (topic, partition) → fingerprint, as in `fingerprints.of_kind`.

    None if the input of an expected output is at or above the committed offset.
    """
    found: dict[tuple[str, int], fingerprints.Fingerprint] = {}
    if _alike(tables):  # speed: the fingerprints of the ledger are there already
        for (_, partition), told in fingerprints.of_kind(tables, "ledger").items():
            if told.highest >= tables.positions.get(partition, 0):
                return None
            found |= {(topic, partition): told for topic in tables.workload.compared}
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
    if tables.workload.expected != one_on_each(*tables.workload.compared) or tables.unplaced:
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
        else tables.gathered(fingerprints.contiguous_ranges(outputs))
    )


def without_suspects(tables: Tables, outputs: DataFrame) -> DataFrame:
    """Return the outputs in `outputs` that are not suspects; `outputs` itself if there are no suspects."""
    wrong = suspects(tables)
    if wrong is None:
        return outputs
    same = F.expr("o.topic = s.topic AND o.number <=> s.number")
    return tables.gathered(outputs.alias("o").join(wrong.alias("s"), same, "left_anti"))
