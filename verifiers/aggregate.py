"""Check that the totals agree with the inputs.

    wrong-aggregate    a total is not the previous total of the same key plus the amount of its own input

    sums/3, key k7:   input 41 (amount 42) → 310      input 97 (amount 98) → 408      right
                                                      input 97 (amount 98) → 366      wrong: it misses input 41

Each step is checked, in the order of the inputs (which is the order of the outputs, or they are `reordered`). So a
total that misses an amount is found where that first happens; the totals after it, which continue from there, are not.
An input that is `lost` or `duplicate` is reported as such, and the steps of its total may be right. If another finding
explains an output (a zombie wrote it, or the observer read another one there), the next step may continue from that
output or from the one before it. Totals are integers. The workload defines its totals and amounts as Spark SQL.
"""

from functools import partial
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from onceproof.verifiers.evidence import causes, suspects
from onceproof.verifiers.evidence.check import AGGREGATE, LOG, Check, Judged
from onceproof.verifiers.evidence.findings import Sample, finding, place, told
from onceproof.verifiers.evidence.tables import PLACE, Tables

CLAIM = "each total is the previous total of its key plus the amount of its own input"


def _judge(tables: Tables) -> Judged:
    right = tables.workload.aggregate
    assert right is not None  # the need AGGREGATE makes sure of it
    outputs = tables.outputs.withColumn("stands", F.lit(True))
    explained = causes.outputs(tables)
    if explained is not None:
        outputs = tables.outputs.join(explained.select(*PLACE, F.lit(False).alias("stands")).distinct(), PLACE, "left")
        outputs = outputs.withColumn("stands", F.coalesce("stands", F.lit(True)))
    steps = (
        outputs.withColumn("over", F.expr(right.over))
        .where("over IS NOT NULL")
        .withColumn("before", _before("CASE WHEN stands THEN total END"))
        .withColumn("at_once", _before("total"))
        .withColumn("amount", F.expr(right.amount))
    )
    wrong = suspects.without_suspects(tables, steps.where("stands")).where(
        "NOT coalesce(total = before + amount, false) AND NOT coalesce(total = at_once + amount, false)"
    )
    says = "totals are not the previous total of their key plus the amount of their own input"
    findings = finding(tables, "wrong-aggregate", says, wrong, partial(_sample, tables))
    return Judged(compared=tables.sizes("outputs"), findings=findings)


def _before(total: str) -> Column:
    """Return the previous `total` (Spark SQL) of the same key that is not null; 0 if there is none."""
    lane = "PARTITION BY over, partition, grouping ORDER BY source_offset, offset"
    return F.expr(f"coalesce(lag({total}) IGNORE NULLS OVER ({lane}), 0)")


def _sample(tables: Tables, row: Any) -> Sample:
    return {
        **place(tables, row),
        "number": row["number"],
        "header": told(row),
        "total": row["total"],
        "total_before": row["before"],
        "amount": row["amount"],
        "input": {"partition": row["source_partition"], "offset": row["source_offset"]},
    }


CHECK = Check(name="aggregate", claim=CLAIM, run=_judge, needs=(LOG, AGGREGATE))
