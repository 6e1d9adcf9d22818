"""Do the totals agree with the inputs?

    wrong-aggregate    a total is not the one before it of the same key, plus its own input's amount

    sums/3, key k7:   input 41 (amount 42) → 310      input 97 (amount 98) → 408      right
                                                      input 97 (amount 98) → 366      wrong: it misses input 41

Judged is each step, in the order of the inputs (which is that of the outputs, or they are `reordered`): so a total that
misses something is found where it first does, and those after it, which go on from there, are not. An input that is
`lost` or `duplicate` is that, and its total's steps may be right. Where another finding explains an output (a zombie
wrote it, the observer saw another one there), the next step may go on from it, or from the one before it. Integers
only. What a workload's totals and amounts are, it says as Spark SQL.
"""

from functools import partial
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from onceproof.verifiers.evidence import causes, suspects
from onceproof.verifiers.evidence.check import AGGREGATE, LOG, Check, Judged
from onceproof.verifiers.evidence.findings import Sample, finding, place, told
from onceproof.verifiers.evidence.tables import PLACE, Tables

CLAIM = "each total is the one before it of its key, plus its own input's amount"


def _judge(tables: Tables) -> Judged:
    right = tables.workload.aggregate
    assert right is not None  # it is among the needs
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
    says = "totals are not the one before them of their key, plus their input's amount"
    findings = finding(tables, "wrong-aggregate", says, wrong, partial(_sample, tables))
    return Judged(compared=tables.sizes("outputs"), findings=findings)


def _before(total: str) -> Column:
    """The total before, nothing for the first one."""
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
