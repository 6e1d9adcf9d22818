"""Check that the tables hold each partition completely; only there may a missing record be called lost.

In each partition, end − start = visible + aborted + control offsets: the batches account for every offset, and collect
read as many records as the log shows as visible. No record may be above the end: an LSO below the high watermark hides
records that may still become visible.

    output/3   end 1040   visible 1000 (read: 1000)   aborted 30   control 10      complete
    output/4   end 1040   visible 1000 (read:  999)   aborted 30   control 10      incomplete: no findings by absence

An input partition may start at the low watermark that a fault's delete-records returned, and no further. The group's
committed offsets must be the last ones that its partition of __consumer_offsets shows as committed, and compaction
must not have removed any record of that partition.

Ledger mode does not read the input topic, so the batches alone decide whether its partitions are complete.
"""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceproof.harness.record.results import Reason
from onceproof.verifiers.evidence import fingerprints
from onceproof.verifiers.evidence.cached import cached
from onceproof.verifiers.evidence.check import LOG, Check, Judged
from onceproof.verifiers.evidence.frames import rows, small
from onceproof.verifiers.evidence.tables import Tables

CLAIM = "every offset of every judged partition is accounted for as a visible, an aborted or a control record"


@cached
def incomplete(tables: Tables) -> dict[tuple[str, int], str]:
    """Return the incomplete partitions: (the workload's own name of the topic, partition) → the problem, in words."""
    found = {}
    for each in tables.pinned:
        problem = _problem(tables, each)
        if problem:
            found[tables.role(each["topic"]), each["partition"]] = f"{each['topic']}/{each['partition']}: {problem}"
    return found


def _problem(tables: Tables, each: dict[str, Any]) -> str | None:
    """Return why the tables do not hold a pinned partition completely; None if they do."""
    role, partition = tables.role(each["topic"]), each["partition"]
    length = each["end"] - each["start"]
    log = fingerprints.logs(tables).get((each["topic"], partition, each["leader"]))
    offsets = log.offsets if log else dict.fromkeys(fingerprints.FATES, 0)
    between = role == tables.workload.intermediate_topic
    if role != "input" and each["start"] > (_deleted_to(tables, role, partition) if between else 0):
        return f"it starts at {each['start']}: somebody deleted records that no fault deleted"
    if each["end"] != each["high_watermark"]:
        return f"the LSO {each['end']} is below the high watermark {each['high_watermark']}"
    if sum(offsets.values()) != length:
        return f"{length} offsets, the log's batches account for {sum(offsets.values())}"
    if between or (role == "input" and not tables.full):
        return None  # the topic was not read, so there is no count of records to compare
    kind = "inputs" if role == "input" else "outputs"
    seen = fingerprints.contents(tables).get((kind, role, partition), fingerprints.NOTHING).rows
    if seen != offsets["visible"]:
        return f"{offsets['visible']} visible in the log, the reader saw {seen} records"
    return None


def _deleted_to(tables: Tables, role: str, partition: int) -> int:
    """Return the highest low watermark that a fault's delete-records returned; 0 if no fault deleted any record."""
    marks = tables.deletes_of(role)
    return max((mark.low_watermark for mark in marks if mark.partition == partition), default=0)


def frame(tables: Tables) -> DataFrame:
    """Return the incomplete partitions as a frame: topic, partition, and `hole`, which is true in every row."""
    return small(tables.spark, list(incomplete(tables)), "topic string, partition int").withColumn("hole", F.lit(True))


def _judge(tables: Tables) -> Judged:
    reasons = [
        Reason(kind="indeterminate", says=f"the table of a partition is incomplete: {each}")
        for each in incomplete(tables).values()
    ]
    reasons += [
        Reason(
            kind="indeterminate", says=f"the offsets of a partition moved, so somebody wrote while it was read: {moved}"
        )
        for moved in tables.facts["moved"]
    ]
    reasons += [
        Reason(
            kind="indeterminate",
            says=f"{each['topic']}/{each['partition']} starts at {each['start']}: no fault "
            f"deleted its records beyond {to}",
        )
        for each in tables.pinned
        if each["topic"] == tables.input_topic
        and each["start"] > (to := _deleted_to(tables, "input", each["partition"]))
    ]
    compared = tables.sizes("partitions", "offsets", "batches", "commits")
    return Judged(compared=compared, reasons=reasons + _positions(tables))


def _positions(tables: Tables) -> list[Reason]:
    """Return reasons if the group's committed offsets are not the last ones in its log, or if that log was compacted.

    In the first case one of the two was read wrongly. In the second case the commits of single transactions are
    missing, on which other checks rely.
    """
    place = F.struct("offset", "position")
    last = tables.all_commits.where("fate = 'visible'").groupBy("topic", "partition").agg(F.max(place).alias("last"))
    in_log = {(row["topic"], row["partition"]): row["last"]["position"] for row in rows(last)}
    shown = {(each["topic"], each["partition"]): each["offset"] for each in tables.facts["positions"]}
    gone = tables.gone_from("__consumer_offsets")
    reasons = [f"the group's log was compacted: {gone} records of it are gone"] if gone else []
    reasons += [
        f"the LSO {each['end']} of {each['topic']}/{each['partition']} is below the high watermark "
        f"{each['high_watermark']}"
        for each in tables.facts["internal"]
        if each["end"] != each["high_watermark"]
    ]
    of_group = tables.workload.claim.position != "database"
    reasons += [
        f"the group's committed offset on {topic}/{partition} is {shown.get((topic, partition))}, but the last one in "
        f"its log is {in_log.get((topic, partition))}"
        for topic, partition in sorted(shown.keys() | in_log.keys())
        if of_group and shown.get((topic, partition)) != in_log.get((topic, partition))
    ]
    return [Reason(kind="indeterminate", says=each) for each in reasons + _damaged(tables)]


def _damaged(tables: Tables) -> list[str]:
    """Return a reason if the bytes of batches from which this run is judged do not have the CRC of their header."""
    wrong = tables.of_leaders((*tables.pinned, *tables.facts["internal"])).where("NOT intact")
    found = rows(wrong.select("topic", "partition", "first").orderBy("topic", "partition", "first"))
    if not found:
        return []
    first = f"the first in {found[0]['topic']}/{found[0]['partition']} at offset {found[0]['first']}"
    return [f"the bytes of {len(found)} batches do not have their CRC, {first}"]


CHECK = Check(name="completeness", claim=CLAIM, run=_judge, needs=(LOG,))
