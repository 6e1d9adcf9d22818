"""The one pass over what should be and what is: expected and actual outputs, counted for each number.

One hash aggregation; a number for which everything fits at once (one due, one there, digest, destination and header as
they should be, its input below the committed position) drops out, and only suspects are left for the checks.
"""

from functools import lru_cache, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from verifiers import summary
from verifiers.tables import Tables

KEY = ["topic", "number"]


@lru_cache(maxsize=2)
def expected(tables: Tables) -> DataFrame:
    """One row an output that should be: topic, partition, number, digest, input (partition, offset, least)."""
    inputs = tables.truth.unionByName(strangers(tables).withColumn("least", F.lit(1)))
    inputs.withColumn("input", F.struct("partition", "offset", "least")).createOrReplaceTempView("inputs")
    return tables.spark.sql(tables.workload.expected)


@lru_cache(maxsize=2)
def strangers(tables: Tables) -> DataFrame:
    """Inputs in the log that the ledger does not have, not even as `info`: somebody else wrote to the input.

    They are inputs all the same, so what the pipeline makes of them is no phantom.
    """
    if summary.log_holds_the_ledger(tables):
        return tables.inputs.where(F.lit(False))
    known = tables.ledger.where("offset IS NOT NULL").select("partition", "offset")
    info = tables.ledger.where("offset IS NULL").select("number")
    unknown = tables.inputs.join(known, ["partition", "offset"], "left_anti")
    return unknown.join(info, "number", "left_anti")


@lru_cache(maxsize=2)
def suspects(tables: Tables) -> DataFrame | None:
    """Topic and number of every output that does not fit, with the input's place; None when all fit."""
    nothing = F.lit(None).cast("bigint")
    should = expected(tables).select(
        *KEY, F.lit(1).alias("due"), F.lit(0).alias("there"), F.col("digest").alias("want"), nothing.alias("got"),
        F.col("partition").alias("to"), nothing.cast("int").alias("at"),
        F.col("input.partition").alias("from_p"), F.col("input.offset").alias("from_o"),
        nothing.cast("int").alias("told_p"), nothing.alias("told_o"),
    )  # fmt: skip
    there = tables.outputs.select(
        *KEY, F.lit(0).alias("due"), F.lit(1).alias("there"), nothing.alias("want"), F.col("digest").alias("got"),
        nothing.cast("int").alias("to"), F.col("partition").alias("at"),
        nothing.cast("int").alias("from_p"), nothing.alias("from_o"),
        F.col("source_partition").alias("told_p"), F.col("source_offset").alias("told_o"),
    )  # fmt: skip
    values = ("want", "got", "to", "at", "from_p", "from_o", "told_p", "told_o")
    fits = (
        (F.col("due") == 1) & (F.col("there") == 1) & F.col("want").eqNullSafe(F.col("got"))
        & F.col("to").eqNullSafe(F.col("at")) & F.col("from_p").eqNullSafe(F.col("told_p"))
        & (F.col("from_o").isNull() | (F.col("from_o").eqNullSafe(F.col("told_o")) & below_position(tables)))
    )  # fmt: skip
    found = (
        should.unionAll(there)
        .groupBy(*KEY)
        .agg(F.sum("due").alias("due"), F.sum("there").alias("there"), *(F.max(name).alias(name) for name in values))
        .where(~fits)
        .select(*KEY, "there", "from_p", "from_o")
        .persist()
    )
    return None if found.isEmpty() else found


def below_position(tables: Tables, partition: str = "from_p", offset: str = "from_o") -> Column:
    """Whether the group says that it has consumed the input in these columns."""
    terms = [
        (F.col(partition) == each) & (F.col(offset) < position) for each, position in tables.positions.items()
    ]
    return reduce(Column.__or__, terms, F.lit(False))
