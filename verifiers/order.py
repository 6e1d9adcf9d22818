"""Check that the outputs of each source partition are in the order of their inputs.

    reordered    in one output partition, outputs of one source partition are out of source order

    output/3, from input/3:   offset 10 ← 41   offset 11 ← 43   offset 12 ← 42      reordered: offset 12

An output is counted if its source offset is below that of the output before it. Outputs that belong to another finding
(a duplicate, an output with a wrong header, a zombie's output) are left out, since one cause has one class.
"""

from functools import partial
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from onceproof.verifiers.evidence import suspects
from onceproof.verifiers.evidence.check import IDENTITY, IN_ORDER, LOG, Check, Judged
from onceproof.verifiers.evidence.findings import Sample, finding, place, told
from onceproof.verifiers.evidence.tables import Tables, over_earlier

CLAIM = "in each output partition, the outputs of one source partition are in the order of their inputs"
_LANE = ["topic", "partition", "source_partition"]


def _judge(tables: Tables) -> Judged:
    compared = tables.sizes("outputs")
    mixed = _mixed(suspects.contiguous_ranges(tables))
    if mixed.isEmpty():  # speed: what follows finds nothing then
        return Judged(compared=compared)
    before = F.lag("source_offset").over(Window.partitionBy(*_LANE).orderBy("offset"))
    there = suspects.fitting(tables).join(F.broadcast(mixed), _LANE, "left_semi")  # speed: all others are in order
    wrong = tables.gathered(there.withColumn("after", before).where("source_offset < after"))
    says = "outputs come after an output of a later input of the same source partition"
    return Judged(compared=compared, findings=finding(tables, "reordered", says, wrong, partial(_sample, tables)))


def _mixed(contiguous_ranges: DataFrame) -> DataFrame:
    """Return the lanes (`_LANE`) in which contiguous ranges overlap or go back, by either offset.

    Only there can an output be out of order.
    """
    earlier = over_earlier(_LANE, "first, last")
    highest = contiguous_ranges.selectExpr("*", f"max(last) {earlier} AS own", f"max(source_last) {earlier} AS theirs")
    return highest.where("first < own OR source_first < theirs").select(*_LANE).distinct()  # narrows


def _sample(tables: Tables, row: Any) -> Sample:
    return {
        **place(tables, row),
        "number": row["number"],
        "header": told(row),
        "after_source_offset": row["after"],
        "input": {"partition": row["source_partition"], "offset": row["source_offset"]},
    }


CHECK = Check(name="order", claim=CLAIM, run=_judge, needs=(LOG, IDENTITY, IN_ORDER))
