"""Did two readers see the same log?

    inconsistent-read    the live observer saw another record at an offset than collect did, or saw one committed that
                         was not there later

    observer, at 12 s: output/3 offset 41 = number 97      collect, at rest: offset 41 = number 98, or nothing

The observer reads under read_committed with a client of the other family. What it has not seen says nothing: it may
have been late; but where it saw nothing of a topic that has outputs, nobody has watched, and the run is vacuous. What
it saw of a transaction that was aborted is `aborted-read`. A record is called missing only where the partition is
complete, which it is not when somebody deleted its records.
"""

from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.verdict import CheckResult, Reason
from verifiers import atomicity, completeness, summary
from verifiers.findings import Sample, finding, place
from verifiers.spark import unless_empty
from verifiers.tables import PLACE, Tables, kept

CLAIM = "what the live observer saw at an offset is what stands there at rest"


@kept
def inconsistent(tables: Tables) -> DataFrame | None:
    """Where the readers differ: topic, partition, offset, and each one's number and digest."""
    if tables.observed is None:
        return None
    if summary.same(tables, "observed", "at rest"):  # speed: what follows finds nothing then
        return None
    at_rest = tables.outputs.select(*PLACE, F.col("number").alias("number_at_rest"),
                                    F.expr(summary.ALL_OF_IT).alias("digest_at_rest"))  # fmt: skip
    lane = ["topic", "partition"]
    differ = tables.observed.join(at_rest, PLACE, "left").where("digest_at_rest IS NULL OR digest != digest_at_rest")
    differ = differ.join(F.broadcast(completeness.frame(tables)), lane, "left")
    differ = differ.where("digest_at_rest IS NOT NULL OR hole IS NULL")
    hidden = atomicity.aborted(tables)
    if hidden is not None:
        differ = differ.join(hidden, PLACE, "left_anti")
    return unless_empty(differ.drop("hole", "at").dropDuplicates())


def check(tables: Tables) -> CheckResult:
    wrong, findings = inconsistent(tables), []
    if wrong is not None:
        says = "records that the live observer saw are different at rest, or missing"
        findings = finding(tables, "inconsistent-read", says, wrong, partial(_sample, tables))
    return CheckResult(name="readers", claim=CLAIM, findings=findings, reasons=_unwatched(tables))


def _unwatched(tables: Tables) -> list[Reason]:
    if not tables.plan.scenario.workload.observer:
        return []
    there, seen = ({topic for topic, _ in summary.of_kind(tables, kind)} for kind in ("outputs", "observed"))
    return [Reason(kind="vacuous", says=f"the live observer saw nothing of {tables.topic(topic)}")
            for topic in sorted(there - seen)]  # fmt: skip


def _sample(tables: Tables, row: Any) -> Sample:
    return {
        **place(tables, row),
        "observed": {"number": row["number"], "digest": row["digest"]},
        "at_rest": None if row["digest_at_rest"] is None
        else {"number": row["number_at_rest"], "digest": row["digest_at_rest"]},
    }  # fmt: skip


CHECKS = (check,)
