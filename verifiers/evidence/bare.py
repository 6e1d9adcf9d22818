"""Give the outputs that are in no transaction, by the flag of the batches that hold them."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceproof.verifiers.evidence.spark import unless_empty
from onceproof.verifiers.evidence.tables import PLACE, Tables, cached


@cached
def outputs(tables: Tables) -> DataFrame | None:
    """Return outputs in batches that are not transactional, as `tables.outputs`; None if there are none.

    None as well if the pipeline does not claim to write its outputs in transactions.
    """
    if not tables.workload.claim.transactional:
        return None
    batches = tables.log.where("NOT transactional AND control IS NULL")
    batches = batches.where(F.col("topic").isin(*tables.workload.judged))
    if batches.isEmpty():  # speed: what follows finds nothing then
        return None
    places = batches.selectExpr("topic", "partition", "explode(sequence(first, last)) AS offset")
    return unless_empty(tables.outputs.join(places, PLACE, "left_semi"))
