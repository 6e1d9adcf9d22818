"""Do all replicas hold the same log?

    replica-divergence    after quiesce, with the ISR full, replicas of a partition hold different batches below the
                          high watermark

    broker1 output/0: [0..9 crc a] [10..19 crc b]      broker2 output/0: [0..9 crc a] [10..19 crc c]

Compared are first and last offset, producer id and epoch, sequence and CRC of each batch from the log start on.
"""

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from harness.verdict import SAMPLES_MAX, CheckResult, Finding
from verifiers import summary
from verifiers.samples import batches_around
from verifiers.spark import rows
from verifiers.tables import Tables

CLAIM = "all replicas of a judged partition hold the same batches below the high watermark"
_BROKERS = ("broker1", "broker2", "broker3")


def check(tables: Tables) -> CheckResult:
    logs = summary.logs(tables)
    differ = [
        each
        for each in tables.pinned
        if len({getattr(logs.get((each["topic"], each["partition"], b)), "batches", summary.NOTHING) for b in _BROKERS})
        != 1
    ]
    if not differ:
        return CheckResult(name="replicas", claim=CLAIM)
    where = [
        (F.col("topic") == each["topic"]) & (F.col("partition") == each["partition"])
        & (F.col("last") >= each["start"]) & (F.col("first") < each["high_watermark"])
        for each in differ
    ]  # fmt: skip
    same = ["topic", "partition", "first", "last", "producer_id", "producer_epoch", "sequence", "crc"]
    wrong = (
        tables.batches.where(reduce(Column.__or__, where))
        .groupBy(*same).agg(F.sort_array(F.collect_set("broker")).alias("held_by"))
        .where(F.size("held_by") != len(_BROKERS))
    )  # fmt: skip
    samples = [
        {"topic": row["topic"], "partition": row["partition"], "offset": row["first"], "crc": row["crc"],
         "held_by": list(row["held_by"])}
        for row in rows(wrong.orderBy("topic", "partition", "first").limit(SAMPLES_MAX))
    ]  # fmt: skip
    says = "batches are not the same on all replicas"
    found = Finding(cls="replica-divergence", count=wrong.count(), says=says, samples=batches_around(tables, samples))
    return CheckResult(name="replicas", claim=CLAIM, findings=[found])


CHECKS = (check,)
