"""Check that an application's outputs are what its model gives.

    corrupted          an output is none of those that the model gives for its input (compare = "each")
    wrong-aggregate    the last output of a key is not the model's (final-per-key), or one of its outputs is not the
                       model's at that place (steps)

    SELECT key, sum(amount) AS total FROM inputs GROUP BY key           k7 310
      totals/3 offset 41: {"key":"k7","total":310}, the last one of k7                    right
      totals/3 offset 41: {"key":"k7","total":352}, the last one of k7                    wrong-aggregate

How many outputs an input has is compared by `exactly-once`, if an output names its input. An output that another
finding explains is left out, and so are all outputs of its key. By key, nothing is compared where inputs are lost, or
where the input topic has records that the load did not send; the verdict is not valid then.

By key, the model is compared for the inputs below the committed offset. If there are others when the run ends, or
inputs whose offset is not known, it is not known what the outputs should be, and that is a reason (`unknown`).
"""

from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceproof.harness.record.results import Finding, Reason, ReasonKind
from onceproof.verifiers import completeness, inputs
from onceproof.verifiers.evidence import causes, modelled, suspects
from onceproof.verifiers.evidence.check import LOG, MODEL, Check, Judged
from onceproof.verifiers.evidence.findings import Sample, finding, place, told
from onceproof.verifiers.evidence.frames import rows
from onceproof.verifiers.evidence.tables import PLACE, Tables

CLAIM = "the outputs are what the model gives for the inputs"
_EACH = "outputs are none of those that the model gives for their input"
_BY_KEY = "outputs of a key are not what the model gives for it, or are missing"
_KEY = ["topic", "key"]
_NTH = "row_number() OVER (PARTITION BY topic, key ORDER BY {}) AS nth"
_LEFT: tuple[tuple[ReasonKind, str], ...] = (
    ("stalled", "are at or above the committed offset"),
    ("indeterminate", "have no known offset"),
)


def _judge(tables: Tables) -> Judged:
    if modelled.of(tables).compare == "each":
        return Judged(compared=tables.sizes("outputs"), findings=_each(tables))
    if inputs.lost(tables) is not None or inputs.strangers(tables) is not None:
        return Judged(compared={})
    should, there = (_but_explained(tables, frame) for frame in (modelled.rows(tables), modelled.outputs(tables)))
    counted = {"keys": should.select(*_KEY).distinct().count(), **tables.sizes("outputs")}
    final = modelled.of(tables).compare == "final-per-key"
    there = _final(tables, there) if final else there.selectExpr("*", _NTH.format("partition, offset"))
    should = should.selectExpr("*", _NTH.format("number, result"))
    return Judged(compared=counted, findings=_different(tables, should, there), reasons=_left(tables))


def _left(tables: Tables) -> list[Reason]:
    """Return reasons if inputs are at or above the committed offset, or if it is not known whether they are."""
    placed = tables.truth.join(F.broadcast(tables.positions_frame), "partition", "left")
    # In ledger mode, an input that was not acknowledged may be in the log.
    nowhere = "offset IS NULL" + (" AND least = 1" if tables.full else "")
    counts = F.expr("count_if(offset >= coalesce(position, 0))"), F.expr(f"count_if({nowhere})")
    [row] = rows(placed.agg(*counts))
    return [
        Reason(kind=kind, says=f"{count} inputs {says}, so it is not known whether the outputs must have them")
        for count, (kind, says) in zip(row, _LEFT, strict=True)
        if count
    ]


def _each(tables: Tables) -> list[Finding]:
    """Return the finding of outputs that are none of those of their input, where each of these counts once."""
    same = ["topic", "number", "result"]
    nth = "row_number() OVER (PARTITION BY topic, number, result ORDER BY {}) AS nth"
    contents = modelled.outputs(tables).select(*PLACE, "result")
    outputs = suspects.fitting(tables).join(contents, PLACE).selectExpr("*", nth.format("partition, offset"))
    should = modelled.rows(tables).select(*same).selectExpr("*", nth.format("1"))
    alike = [F.col(f"o.{name}").eqNullSafe(F.col(f"s.{name}")) for name in (*same, "nth")]
    wrong = outputs.alias("o").join(should.alias("s"), alike, "left_anti")
    return finding(tables, "corrupted", _EACH, wrong, partial(_output, tables))


def _but_explained(tables: Tables, frame: DataFrame) -> DataFrame:
    """Return the rows of all keys but those of which another finding explains an output."""
    explained = causes.outputs(tables)
    if explained is None:
        return frame
    keys = modelled.outputs(tables).join(explained.select(*PLACE), PLACE, "left_semi").select(*_KEY).distinct()
    return frame.join(keys, _KEY, "left_anti")


def _final(tables: Tables, there: DataFrame) -> DataFrame:
    """Return the last output of each key in each partition; none of a key whose last record is a tombstone.

    The rows of a table have no order, so each of them counts, and there must be as many of a key as the model returns.
    """
    if tables.workload.tables:
        return there.selectExpr("*", _NTH.format("result"))
    last = F.max_by(F.struct("offset", "result", "gone"), "offset").alias("last")
    latest = there.groupBy(*_KEY, "partition").agg(last).select(*_KEY, "partition", "last.*")
    return latest.where("NOT gone").withColumn("nth", F.lit(1))


def _different(tables: Tables, should: DataFrame, there: DataFrame) -> list[Finding]:
    """Return the finding of outputs by key that differ from the model, and of those that are missing."""
    holes = completeness.frame(tables).where("topic != 'input'").select("topic").distinct()
    on = [*_KEY, "nth"]
    right = should.select(*(F.col(each).alias(f"its_{each}") for each in on), F.col("result").alias("should"))
    alike = [F.col(each).eqNullSafe(F.col(f"its_{each}")) for each in on]
    both = there.join(right, alike, "full").withColumns({each: F.coalesce(each, f"its_{each}") for each in _KEY})
    both = both.join(F.broadcast(holes), "topic", "left_anti")
    wrong = both.where("NOT (result <=> should) OR its_nth IS NULL OR offset IS NULL")
    order = ("topic", "key", "partition", "offset")
    return finding(tables, "wrong-aggregate", _BY_KEY, wrong, partial(_of_key, tables), order=order)


def _output(tables: Tables, row: Any) -> Sample:
    at = {"input": {"partition": row["source_partition"], "offset": row["source_offset"]}}
    return {**place(tables, row), "number": row["number"], "header": told(row), "output": row["result"], **at}


def _of_key(tables: Tables, row: Any) -> Sample:
    """Return the sample of a key. A key without an output has no place in the log: its partition and offset are -1."""
    known = row["offset"] is not None
    at = place(tables, row) if known else {"topic": tables.topic(row["topic"]), "partition": -1, "offset": -1}
    return {**at, "key": row["key"], "output": row["result"], "model": row["should"]}


CHECK = Check(name="model", claim=CLAIM, run=_judge, needs=(LOG, MODEL))
