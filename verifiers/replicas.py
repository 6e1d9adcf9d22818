"""Check that all replicas hold the same log.

    replica-divergence    after quiesce, with the ISR full, replicas of a partition hold different batches below the
                          high watermark

    broker1 output/0: [0..9 crc a] [10..19 crc b]      broker2 output/0: [0..9 crc a] [10..19 crc c]

The check compares the first and last offset, producer id and epoch, base sequence and CRC of each batch, from the log
start up to the high watermark.
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import functions as F

from onceproof.verifiers.evidence import fingerprints
from onceproof.verifiers.evidence.check import LOG, Check, Judged
from onceproof.verifiers.evidence.findings import finding
from onceproof.verifiers.evidence.fingerprints import Fingerprint
from onceproof.verifiers.evidence.spark import small
from onceproof.verifiers.evidence.tables import Tables

CLAIM = "all replicas of a judged partition hold the same batches below the high watermark"


def _held(logs: Mapping[tuple[str, int, str], fingerprints.Log], each: Mapping[str, Any]) -> set[Fingerprint]:
    """Return the different fingerprints among a partition's replicas. A replica without batches has `NOTHING`."""
    found = (logs.get((each["topic"], each["partition"], broker)) for broker in each["replicas"])
    return {log.batches if log else fingerprints.NOTHING for log in found}  # speed


def _judge(tables: Tables) -> Judged:
    compared, logs = tables.sizes("replicas", "batches"), fingerprints.logs(tables)
    differ = [each for each in tables.pinned if len(_held(logs, each)) != 1]  # speed: the batches themselves decide
    if not differ:  # speed: what follows finds nothing then
        return Judged(compared=compared)
    judged = small(
        tables.spark,
        [
            (each["topic"], each["partition"], broker, each["start"], each["high_watermark"], len(each["replicas"]))
            for each in differ
            for broker in each["replicas"]
        ],
        "topic string, partition int, broker string, start bigint, high bigint, replicas int",
    )
    same = ["topic", "partition", "first", "last", "producer_id", "producer_epoch", "sequence", "crc"]
    wrong = (
        tables.batches.join(F.broadcast(judged), ["topic", "partition", "broker"])
        .where("last >= start AND first < high")
        .groupBy(*same, "replicas")
        .agg(F.sort_array(F.collect_set("broker")).alias("held_by"))
        .where("size(held_by) != replicas")
    )
    findings = finding(
        tables,
        "replica-divergence",
        "batches are not the same on all replicas of their partition",
        wrong,
        lambda row: {
            "topic": row["topic"],
            "partition": row["partition"],
            "offset": row["first"],
            "crc": row["crc"],
            "held_by": list(row["held_by"]),
        },
        order=("topic", "partition", "first"),
    )
    return Judged(compared=compared, findings=findings)


CHECK = Check(name="replicas", claim=CLAIM, run=_judge, needs=(LOG,))
