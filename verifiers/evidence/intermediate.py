"""Say which records of a chain's intermediate topic were made of which inputs.

The outputs of a chain name both their input and the record of the intermediate topic that they were made of. Of an
input without an output, only a manifest of the first service tells which record that was, and only if its transaction
read and wrote as many records of a partition, without a gap:

    manifest: read input/0 offsets 100..109, wrote 10 records to middle/0 at offsets 207..216
    input/0 offset 103 has no output                                        middle/0 offset 210 was made of it
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceproof.verifiers import atomicity
from onceproof.verifiers.evidence.tables import TRANSACTION, Tables


def read_of(tables: Tables, inputs: DataFrame) -> DataFrame:
    """Return the places at which these inputs were read: their own, and those of the records made of them.

    `inputs` has from_p and from_o, their partition and offset. Columns of the result: from (the name of the topic on
    the cluster), from_p, from_o.
    """
    places = inputs.select(F.lit(tables.input_topic).alias("from"), "from_p", "from_o")
    middle = tables.workload.intermediate_topic
    if not middle:  # speed: no manifest lists a record of it
        return places
    read = tables.transactions.selectExpr(*TRANSACTION, "explode(sources) AS (p, span)").distinct()
    made = atomicity.told_parts(tables).where(F.col("topic") == middle).join(read, TRANSACTION)
    made = made.where("cast(p AS int) = partition AND records = last - first + 1 AND records = span[1] - span[0]")
    inside = F.expr("from_p = partition AND from_o >= span[0] AND from_o < span[1]")
    there = places.join(tables.few(made), inside).select(
        F.lit(tables.topic(middle)).alias("from"), "from_p", F.expr("first + from_o - span[0] AS from_o")
    )
    return places.unionAll(there)
