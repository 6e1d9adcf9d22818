"""Do the committed position and the visible outputs tell the same story?

    offset-divergence    an output is visible whose input lies at or above the group's committed position, or the
                         position lies beyond the end of the log

    position of input/3: 44      output of input/3 offset 44 is visible: its position was never committed
    position of input/3: 46      but input/3 ends at 45

With position and outputs in one transaction there is no excuse for either. (Inputs below the position without output
are `lost`: one cause, one class.)
"""

from typing import Any

from harness.verdict import SAMPLES_MAX, CheckResult, Finding
from verifiers import accounts
from verifiers.samples import batches_around
from verifiers.spark import rows
from verifiers.tables import Tables

CLAIM = "no visible output's input lies at or above the committed position, and no position beyond the log's end"


def check(tables: Tables) -> CheckResult:
    samples = _beyond_end(tables)
    count = len(samples)
    suspects = accounts.suspects(tables)
    if suspects is not None:
        above = suspects.where("there > 0 AND from_o IS NOT NULL").where(~accounts.below_position(tables))
        count += above.count()
        outputs = tables.outputs.join(above.select(*accounts.KEY, "from_p", "from_o"), accounts.KEY)
        for row in rows(outputs.orderBy("partition", "offset").limit(SAMPLES_MAX)):
            samples.append({
                "topic": tables.topic(row["topic"]), "partition": row["partition"], "offset": row["offset"],
                "number": row["number"], "position": tables.positions.get(row["from_p"]),
                "input": {"partition": row["from_p"], "offset": row["from_o"]},
            })  # fmt: skip
    if not count:
        return CheckResult(name="offsets", claim=CLAIM)
    says = "outputs above the committed position, or positions beyond the end of the log"
    found = Finding(cls="offset-divergence", count=count, says=says,
                    samples=batches_around(tables, samples[:SAMPLES_MAX]))  # fmt: skip
    return CheckResult(name="offsets", claim=CLAIM, findings=[found])


def _beyond_end(tables: Tables) -> list[dict[str, Any]]:
    ends = {each["partition"]: each["high_watermark"] for each in tables.pinned if each["topic"] == tables.input_topic}
    return [
        {"topic": tables.input_topic, "partition": partition, "offset": ends[partition], "position": position}
        for partition, position in sorted(tables.positions.items()) if position > ends[partition]
    ]  # fmt: skip


CHECKS = (check,)
