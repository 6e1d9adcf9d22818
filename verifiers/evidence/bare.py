"""Give what is in no transaction, by the flag of the batches that hold it."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceproof.verifiers.evidence.cached import cached
from onceproof.verifiers.evidence.tables import PLACE, Tables


@cached
def batches(tables: Tables) -> DataFrame | None:
    """Return the batches of the judged and the intermediate topics that are not transactional; None without any.

    None as well if the pipeline does not claim to write its outputs in transactions.
    """
    if not tables.workload.claim.transactional:  # speed: nothing asks then
        return None
    found = tables.log.where("NOT transactional")  # a marker is transactional
    found = found.where(F.col("topic").isin(*tables.workload.topics))  # speed: workers write no others
    return tables.unless_empty(found)


@cached
def outputs(tables: Tables) -> DataFrame | None:
    """Return outputs in batches that are not transactional, as `tables.outputs`; None if there are none.

    None as well if the pipeline does not claim to write its outputs in transactions.
    """
    found = batches(tables)
    return None if found is None else tables.unless_empty(tables.outputs.join(offsets(found), PLACE, "left_semi"))


def between(tables: Tables) -> DataFrame | None:
    """Return the offsets (`PLACE`) of the intermediate topic that are in no transaction; None if there are none."""
    found = batches(tables)
    middle = tables.workload.intermediate_topic
    return None if found is None else tables.unless_empty(offsets(found).where(F.col("topic") == middle))


def offsets(batches: DataFrame) -> DataFrame:
    """Return one row (`PLACE`) for each offset of these batches."""
    return batches.selectExpr("topic", "partition", "explode(sequence(first, last)) AS offset")
