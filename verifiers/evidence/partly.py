"""Give a reason if inputs were never acknowledged and have some of their outputs, but not all.

Such an input need not be in the log, and then it has no output. One output shows that it was there and was processed,
so the others must be there as well:

    ledger: number 41, info, without an offset      output-a has its output, output-b has none      1
"""

from pyspark.sql import functions as F

from onceproof.harness.record.results import Reason
from onceproof.verifiers.evidence import suspects
from onceproof.verifiers.evidence.causes import KEY
from onceproof.verifiers.evidence.tables import Tables

_SAYS = "were never acknowledged and are not known to be in the log, and have some of their outputs, but not all"


def reasons(tables: Tables) -> list[Reason]:
    """Return a reason with their number. Those that the log has are not among them, since they are due like others."""
    if not tables.unplaced:  # speed: what follows finds none
        return []
    maybe = tables.gathered(tables.truth.where("offset IS NULL AND least = 0"))
    if maybe.isEmpty():  # speed
        return []
    must = suspects.outputs_of(tables, maybe.withColumn("least", F.lit(1))).where("input.least > 0")
    needed = must.groupBy(*KEY).agg(F.count("*").alias("needed"))
    there = tables.outputs.join(tables.few(maybe), "number", "left_semi").groupBy(*KEY).agg(F.count("*").alias("there"))
    both = needed.join(there, KEY, "full").groupBy("number")
    counted = both.agg(F.expr("count(there) > 0 AND max(coalesce(there, 0) < coalesce(needed, 0)) AS partly"))
    count = counted.where("partly").count()
    return [Reason(kind="indeterminate", says=f"{count} inputs {_SAYS}")] if count else []
