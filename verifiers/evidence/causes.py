"""Give each cause one primary class: set aside the outputs that a more specific finding explains.

aborted-read, torn-transaction, zombie-write    explain the outputs that they name
inconsistent-read                               explains the record at its place, and what either reader read there
input-lost                                      explains the outputs of the acknowledged input, and of the record
                                                that the log holds instead

half of transaction 7's outputs are visible, and its inputs were processed again as transaction 9:
                                                torn-transaction, not duplicate
half of transaction 7's outputs are visible, and the other half is nowhere:
                                                torn-transaction, not lost
"""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceproof.verifiers import atomicity, inputs, readers, zombies
from onceproof.verifiers.evidence.cached import cached
from onceproof.verifiers.evidence.tables import PLACE, TRANSACTION, Tables

KEY = ["topic", "number"]


@cached
def outputs(tables: Tables) -> DataFrame | None:
    """Return the places of outputs that a finding explains, and the numbers read there; None if there are none.

    Columns: topic, partition, offset, number.
    """
    frames = [each.select(*PLACE, "number") for each in zombies.outputs(tables)]
    for each in (atomicity.aborted(tables), atomicity.torn_outputs(tables)):
        if each is not None:
            frames.append(each.select(*PLACE, "number"))
    differ = readers.inconsistent(tables)
    if differ is not None:
        frames += [differ.select(*PLACE, "number"), differ.select(*PLACE, F.col("number_at_rest").alias("number"))]
    lost = inputs.lost(tables)
    if lost is not None:
        either = lost.select("number").unionAll(lost.select(F.col("found").alias("number"))).distinct()
        frames.append(tables.outputs.join(either, "number", "left_semi").select(*PLACE, "number"))
    return tables.gathered(reduce(DataFrame.unionByName, frames)) if frames else None


@cached
def standing(tables: Tables) -> DataFrame:
    """Return the outputs that no finding explains; `tables.outputs` itself if no output is explained."""
    explained = outputs(tables)
    if explained is None:
        return tables.outputs
    return tables.gathered(tables.outputs.join(explained.select(*PLACE).distinct(), PLACE, "left_anti"))


def _spans(tables: Tables, torn: DataFrame) -> DataFrame:
    """Return the inputs that torn transactions were made from: p (partition), first, after (the next offset).

    The second service of a chain read the intermediate topic. The inputs behind a range of that topic are bounded by
    the source offsets of the outputs made from the records before and after the range.
    """
    read = (
        tables.transactions.join(torn.select(*TRANSACTION).distinct(), TRANSACTION)
        .select("worker", F.explode("sources").alias("source", "span"))
        .selectExpr("worker", "cast(source AS int) AS p", "span[0] AS first", "span[1] AS after")
        .distinct()
    )
    if not tables.workload.intermediate_topic:
        return read.drop("worker")
    own, between = (read.where(f"worker % 2 = {stage}").drop("worker") for stage in (0, 1))
    beside = (
        tables.outputs.join(F.broadcast(between), F.expr("intermediate_partition = p"))
        .groupBy("p", "first", "after", "source_partition")
        .agg(
            F.max(F.expr("CASE WHEN intermediate_offset < first THEN source_offset + 1 END")).alias("low"),
            F.min(F.expr("CASE WHEN intermediate_offset >= after THEN source_offset END")).alias("high"),
        )
    )
    return own.unionAll(
        beside.select("source_partition", F.coalesce("low", F.lit(0)), F.coalesce("high", F.lit(2**63 - 1)))
    )


def without_excused(tables: Tables, missing: DataFrame) -> DataFrame:
    """Return the missing outputs (topic, number, input) that no other finding explains."""
    explained = outputs(tables)
    if explained is not None:
        missing = missing.join(explained.select(*KEY).distinct(), KEY, "left_anti")
    torn = atomicity.torn(tables)
    if torn is not None:
        within = (F.col("input.partition") == F.col("p")) & F.expr("input.offset >= first AND input.offset < after")
        missing = missing.join(F.broadcast(_spans(tables, torn)), within, "left_anti")
    lost = inputs.lost(tables)
    if lost is not None:
        place = (F.col("input.partition") == F.col("p")) & F.col("input.offset").eqNullSafe(F.col("o"))
        gone = lost.select(F.col("partition").alias("p"), F.col("offset").alias("o"))
        missing = missing.join(F.broadcast(gone), place, "left_anti")
    return missing
