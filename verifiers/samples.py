"""What the log says around a sample: the batch it lies in, its neighbours, and the producer's next control record."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from verifiers.spark import rows
from verifiers.tables import Tables

_NEAR_OFFSETS = 2_000
_SHOWN = 5
_COLUMNS = ("first", "last", "producer_id", "producer_epoch", "sequence", "control")


def batches_around(tables: Tables, samples: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The samples, each with `batches`: up to five batches of the leader's log, its own in the middle."""
    if not samples or not (tables.folder / "tables" / "batches.parquet").exists():
        return list(samples)
    leaders = {(each["topic"], each["partition"]): each["leader"] for each in tables.pinned}
    near = [
        (F.col("topic") == s["topic"]) & (F.col("partition") == s["partition"])
        & (F.col("broker") == leaders.get((s["topic"], s["partition"])))
        & (F.col("last") >= s["offset"] - _NEAR_OFFSETS) & (F.col("first") <= s["offset"] + _NEAR_OFFSETS)
        for s in samples
    ]  # fmt: skip
    log = rows(tables.batches.where(reduce(Column.__or__, near)).orderBy("topic", "partition", "first"))
    return [{**sample, "batches": _neighbours(sample, log)} for sample in samples]


def _neighbours(sample: dict[str, Any], near: list[Any]) -> list[dict[str, Any]]:
    log = [row for row in near if (row["topic"], row["partition"]) == (sample["topic"], sample["partition"])]
    own = next((i for i, row in enumerate(log) if row["first"] <= sample["offset"] <= row["last"]), None)
    if own is None:
        return []
    first = max(0, own - _SHOWN // 2)
    return [{name: row[name] for name in _COLUMNS} for row in log[first : first + _SHOWN]]
