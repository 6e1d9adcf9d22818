"""Do the committed position and the visible outputs tell the same story?

    offset-divergence    an output is visible whose input lies at or above the group's committed position, or the
                         position lies beyond the end of the log

    position of input/3: 44      output of input/3 offset 44 is visible: its position was never committed
    position of input/3: 46      but input/3 ends at 45

With position and outputs in one transaction there is no excuse for either. (Inputs below the position without output
are `lost`; a position that a zombie committed is a `zombie-write`; a log that lost its end is `input-lost`: one cause,
one class.)
"""

from functools import partial
from typing import Any

from pyspark.sql import functions as F

from harness.verdict import CheckResult, Finding
from verifiers import accounts, causes, inputs, zombies
from verifiers.findings import Sample, explained, finding, place
from verifiers.spark import rows
from verifiers.tables import Tables

CLAIM = "no visible output's input lies at or above the committed position, and no position beyond the log's end"
_SAYS = "outputs above the committed position, or positions beyond the end of the log"


def check(tables: Tables) -> CheckResult:
    beyond, above = explained(tables, "offset-divergence", _beyond_end(tables)), _above(tables)
    if not beyond and not above:
        return CheckResult(name="offsets", claim=CLAIM)
    count = len(beyond) + sum(each.count for each in above)
    samples = [*beyond, *(sample for each in above for sample in each.samples)]
    found = Finding(cls="offset-divergence", count=count, says=_SAYS, samples=samples[: tables.samples_max])
    return CheckResult(name="offsets", claim=CLAIM, findings=[found])


def _above(tables: Tables) -> list[Finding]:
    suspects = accounts.suspects(tables)
    if suspects is None:
        return []
    wrong = suspects.where("from_o >= coalesce(position, 0)").where(~F.col("from_p").isin(*zombies.moved(tables)))
    outputs = causes.standing(tables).join(wrong.select(*causes.KEY, "from_p", "from_o", "position"), causes.KEY)
    return finding(tables, "offset-divergence", _SAYS, outputs, partial(_output, tables))


def _output(tables: Tables, row: Any) -> Sample:
    return {
        **place(tables, row),
        "number": row["number"], "position": row["position"],
        "input": {"partition": row["from_p"], "offset": row["from_o"]},
    }  # fmt: skip


def _beyond_end(tables: Tables) -> list[Sample]:
    ends = {each["partition"]: each["high_watermark"] for each in tables.pinned if each["topic"] == tables.input_topic}
    lost = inputs.lost(tables)
    short = set() if lost is None else {row["partition"] for row in rows(lost.select("partition").distinct())}
    return [
        {"topic": tables.input_topic, "partition": partition, "offset": ends[partition], "position": position}
        for partition, position in sorted(tables.positions.items())
        if position > ends[partition] and partition not in short
    ]


CHECKS = (check,)
