"""Check that the totals agree with the inputs.

    wrong-aggregate    a total is not the previous total of the same key plus the amount of its own input

    sums/3, key k7:   input 41 (amount 42) → 310      input 97 (amount 98) → 408      right
                                                      input 97 (amount 98) → 366      wrong: it misses input 41
    balances/3, transfer 41:   a3-1 958 a3-7 1042     but debits/3 has 957 for a3-1   wrong: the changelog differs

Each step is checked, in the order of the inputs (which is the order of the outputs, or they are `reordered`). So a
total that misses an amount is found where that first happens; the totals after it, which continue from there, are not.
An input that is `lost` or `duplicate` is reported as such, and the steps of its total may be right. If another finding
explains an output (a zombie wrote it, or the observer read another one there), the next step may continue from that
output or from the one before it. If an output is reported because it is under another key, the next total of that key
may continue from the one before it, and the next total of its own key may have its amount as well. Totals are integers.
The workload defines its totals and amounts as Spark SQL.

A total may be wrong only because the one before it was not read. So no total is judged in a partition that is
incomplete, and the verdict is then `unknown` (see `completeness`).
"""

from functools import partial
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from onceproof.harness.model.workload import Aggregate
from onceproof.verifiers import completeness
from onceproof.verifiers.evidence import causes, suspects
from onceproof.verifiers.evidence.check import AGGREGATE, LOG, Check, Judged
from onceproof.verifiers.evidence.findings import Sample, finding, place, told
from onceproof.verifiers.evidence.tables import PLACE, Tables

_CLASS = "wrong-aggregate"
_ORDERED = "PARTITION BY over, partition ORDER BY source_offset, offset"
CLAIM = "each total is the previous total of its key plus the amount of its own input"


def _judge(tables: Tables) -> Judged:
    right = tables.workload.aggregate
    assert right is not None  # the need AGGREGATE makes sure of it
    incomplete = completeness.frame(tables).withColumn("over", F.expr(right.over)).select("over", "partition")
    wrong = _wrong_steps(tables, right).join(F.broadcast(incomplete), ["over", "partition"], "left_anti")
    says = "totals are not the previous total of their key plus the amount of their own input"
    findings = finding(tables, _CLASS, says, wrong, partial(_sample, tables))
    if right.state:
        differ = _other_state(tables, right)
        says = "records of the changelog do not have the totals of the outputs that were made from the same input"
        findings += finding(tables, _CLASS, says, differ, partial(_state, tables))
    return Judged(compared=tables.sizes("outputs"), findings=findings)


def _wrong_steps(tables: Tables, right: Aggregate) -> DataFrame:
    """Return the outputs whose total does not follow from the previous one, with `before` and `amount`."""
    outputs = tables.outputs.withColumn("stands", F.lit(True))
    explained = causes.outputs(tables)
    if explained is not None:
        outputs = tables.outputs.join(explained.select(*PLACE, F.lit(False).alias("stands")).distinct(), PLACE, "left")
        outputs = outputs.withColumn("stands", F.coalesce("stands", F.lit(True)))
    steps = (
        outputs.withColumn("over", F.expr(right.over))
        .where("over IS NOT NULL")
        .withColumn("before", _previous("CASE WHEN stands THEN total END"))
        .withColumn("at_once", _previous("total"))
        .withColumn("amount", F.expr(right.amount))
    )
    wrong = steps.where(
        "stands AND NOT coalesce(total = before + amount, false) AND NOT coalesce(total = at_once + amount, false)"
    )
    suspected = suspects.suspects(tables)
    return wrong if suspected is None else _beside_suspects(steps, wrong, suspected)


def _beside_suspects(steps: DataFrame, wrong: DataFrame, suspected: DataFrame) -> DataFrame:
    """Return the rows of `wrong` that are no suspects and do not follow when suspects are under other keys."""
    known = steps.alias("o").join(
        suspected.select(F.col("topic").alias("of"), F.col("number").alias("is")).withColumn("suspect", F.lit(True)),
        F.expr("o.topic = of AND o.number <=> is"),
        "left",
    )
    before = _previous("CASE WHEN stands AND suspect IS NULL THEN total END")
    carried = _previous("CASE WHEN stands AND suspect IS NULL THEN carried END")
    others = (
        known.withColumn("carried", F.expr(f"sum(CASE WHEN suspect THEN amount ELSE 0 END) OVER ({_ORDERED})"))
        .withColumn("between", F.col("carried") - carried)
        .withColumn("fitting", before + F.col("amount"))
        .where("suspect OR total = fitting OR total = fitting + between")
    )
    return wrong.join(others.select(*PLACE), PLACE, "left_anti")


def _other_state(tables: Tables, right: Aggregate) -> DataFrame:
    """Return records of the changelog that differ from the outputs that were made from the same input."""
    fitting = suspects.fitting(tables)
    both = fitting.where(F.col("topic") == tables.workload.changelog)
    hashed = []
    for index, topic in enumerate(right.state_of):
        mine = fitting.where(F.col("topic") == topic)
        both = both.join(mine.selectExpr("number", f"grouping AS key_{index}", f"total AS total_{index}"), "number")
        hashed += [f"key_{index}", f"total_{index}"]
    return both.where(f"NOT (total <=> xxhash64({', '.join(hashed)}))")


def _previous(value: str) -> Column:
    """Return the previous `value` (Spark SQL) of the same key that is not null; 0 if there is none."""
    lane = "PARTITION BY over, partition, grouping ORDER BY source_offset, offset"
    return F.expr(f"coalesce(lag({value}) IGNORE NULLS OVER ({lane}), 0)")


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


def _state(tables: Tables, row: Any) -> Sample:
    return {
        **place(tables, row),
        "number": row["number"],
        "header": told(row),
        "input": {"partition": row["source_partition"], "offset": row["source_offset"]},
    }


CHECK = Check(name="aggregate", claim=CLAIM, run=_judge, needs=(LOG, AGGREGATE))
