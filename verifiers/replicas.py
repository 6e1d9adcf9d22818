"""Check that all replicas hold the same log.

    replica-divergence    after quiesce, with the ISR full, replicas of a partition hold different batches below the
                          high watermark

    broker1 output/0: [0..9 crc a] [10..19 crc b]      broker2 output/0: [0..9 crc a] [10..19 crc c]

The check compares the first and last offset, producer id and epoch, base sequence and CRC of each batch, from the log
start up to the high watermark. A batch whose bytes do not have the CRC of its header is a different batch. A replica
outside of the ISR may lag, so it is not compared, and the verdict is `unknown` at best.
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceproof.harness.record.results import Reason
from onceproof.verifiers.evidence import fingerprints
from onceproof.verifiers.evidence.check import LOG, Check, Judged
from onceproof.verifiers.evidence.findings import Sample, finding
from onceproof.verifiers.evidence.fingerprints import Fingerprint
from onceproof.verifiers.evidence.frames import small
from onceproof.verifiers.evidence.tables import Tables

CLAIM = "all replicas of a judged partition hold the same batches below the high watermark"
SAYS = "batches are not the same on all replicas of their partition"


def _held(logs: Mapping[tuple[str, int, str], fingerprints.Log], each: Mapping[str, Any]) -> set[Fingerprint]:
    """Return the different fingerprints among a partition's replicas. A replica without batches has `NOTHING`."""
    found = (logs.get((each["topic"], each["partition"], broker)) for broker in each["isr"])
    return {log.batches if log else fingerprints.NOTHING for log in found}  # speed


def _judge(tables: Tables) -> Judged:
    compared, logs = tables.sizes("replicas", "batches"), fingerprints.logs(tables)
    reasons = [
        Reason(kind="stalled", says=f"the replica of {each['topic']}/{each['partition']} on {broker} is not in the ISR")
        for each in tables.pinned
        for broker in each["replicas"]
        if broker not in each["isr"]
    ]
    differ = [each for each in tables.pinned if len(_held(logs, each)) != 1]  # speed: the batches themselves decide
    if not differ:  # speed: what follows finds nothing then
        return Judged(compared=compared, reasons=reasons)
    judged = small(
        tables.spark,
        [
            (each["topic"], each["partition"], broker, each["start"], each["high_watermark"], len(each["isr"]))
            for each in differ
            for broker in each["isr"]
        ],
        "topic string, partition int, broker string, start bigint, high bigint, replicas int",
    )
    held = tables.batches.join(F.broadcast(judged), ["topic", "partition", "broker"])
    wrong = different(held.where("last >= start AND first < high"))
    findings = finding(
        tables,
        "replica-divergence",
        SAYS,
        wrong,
        sample,
        order=("topic", "partition", "first"),
    )
    return Judged(compared=compared, findings=findings, reasons=reasons)


def different(held: DataFrame) -> DataFrame:
    """Return the batches that not all replicas of their partition hold, with the brokers that do (`held_by`).

    `held` has the compared batches of each replica, and the number of `replicas` of their partition.
    """
    same = ["topic", "partition", "first", "last", "producer_id", "producer_epoch", "sequence", "crc", "intact"]
    return (
        held.withColumn("intact", F.expr("coalesce(intact, true)"))
        .groupBy(*same, "replicas")
        .agg(F.sort_array(F.collect_set("broker")).alias("held_by"))
        .where("size(held_by) != replicas")
    )


def sample(row: Any) -> Sample:
    """Return what a row of `different` says."""
    return {
        "topic": row["topic"],
        "partition": row["partition"],
        "offset": row["first"],
        "crc": row["crc"],
        "intact": row["intact"],
        "held_by": list(row["held_by"]),
    }


CHECK = Check(name="replicas", claim=CLAIM, run=_judge, needs=(LOG,))
