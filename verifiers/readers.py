"""Check that the live observer and collect read the same log.

    inconsistent-read    the live observer read another record at an offset than collect did, or it read a record that
                         was missing later

    observer, at 12 s: output/3 offset 41 = number 97      collect, at rest: offset 41 = number 98, or nothing

The observer reads under read_committed with a client of the other family. A record that it did not read proves
nothing, since the observer may have been late. If it read nothing of a topic that has outputs, the run is vacuous. A
record of an aborted transaction that it read is `aborted-read`. A record is called missing only if its partition is
complete, which it is not if its records were deleted.
"""

from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceproof.harness.record.results import Reason
from onceproof.verifiers import atomicity, completeness
from onceproof.verifiers.evidence import fingerprints
from onceproof.verifiers.evidence.cached import cached
from onceproof.verifiers.evidence.check import LOG, OBSERVER, Check, Judged
from onceproof.verifiers.evidence.findings import Sample, finding, place
from onceproof.verifiers.evidence.tables import PLACE, Tables

CLAIM = "every record that the live observer read is unchanged at its offset when the run is at rest"


@cached
def inconsistent(tables: Tables) -> DataFrame | None:
    """Return the places at which the two readers differ; None if there are none, or if there was no observer.

    Columns: topic, partition, offset, number and digest (of the observer), number_at_rest and digest_at_rest (of
    collect; null if the record is missing).
    """
    if tables.observed is None:
        return None
    if fingerprints.same(tables, "observed", "at rest"):  # speed: what follows finds nothing then
        return None
    at_rest = tables.outputs.select(
        *PLACE, F.col("number").alias("number_at_rest"), F.expr(fingerprints.ALL_OF_IT).alias("digest_at_rest")
    )
    lane = ["topic", "partition"]
    differ = tables.observed.join(at_rest, PLACE, "left").where("digest_at_rest IS NULL OR digest != digest_at_rest")
    differ = differ.join(F.broadcast(completeness.frame(tables)), lane, "left")
    differ = differ.where("digest_at_rest IS NOT NULL OR hole IS NULL")
    hidden = atomicity.aborted(tables)
    if hidden is not None:
        differ = differ.join(hidden, PLACE, "left_anti")
    return tables.unless_empty(differ.drop("hole", "at").dropDuplicates())


def _judge(tables: Tables) -> Judged:
    wrong, findings = inconsistent(tables), []
    if wrong is not None:
        says = "records that the live observer read are different at rest, or missing"
        findings = finding(tables, "inconsistent-read", says, wrong, partial(_sample, tables))
    return Judged(compared=tables.sizes("observed"), findings=findings, reasons=_unwatched(tables))


def _unwatched(tables: Tables) -> list[Reason]:
    """Return a reason for each topic with outputs of which the observer read nothing."""
    if not tables.plan.scenario.workload.observer:
        return []
    there, seen = ({topic for topic, _ in fingerprints.of_kind(tables, kind)} for kind in ("outputs", "observed"))
    return [
        Reason(kind="vacuous", says=f"the live observer saw nothing of {tables.topic(topic)}, which has outputs")
        for topic in sorted(there - seen)
    ]


def _sample(tables: Tables, row: Any) -> Sample:
    return {
        **place(tables, row),
        "observed": {"number": row["number"], "digest": row["digest"]},
        "at_rest": None
        if row["digest_at_rest"] is None
        else {"number": row["number_at_rest"], "digest": row["digest_at_rest"]},
    }


CHECK = Check(name="readers", claim=CLAIM, run=_judge, needs=(LOG, OBSERVER))
