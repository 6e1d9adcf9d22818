"""From a frame of anomalies to a finding: how many, up to ten samples, and what stands around each in log and history.

A sample has its coordinates (topic, partition, offset), what the check says of it, `batches` (up to five batches of the
leader's log, its own in the middle), `transactions` (those that had its input in their source ranges) and `hidden` (up
to five records that bear on it and that a read_committed reader does not see).
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from onceproof.harness.record.events import OfTransaction, Outcome
from onceproof.harness.record.results import SAMPLES_MAX, Finding
from onceproof.verifiers import hidden
from onceproof.verifiers.evidence.spark import rows
from onceproof.verifiers.evidence.tables import Tables

Sample = dict[str, Any]
_NEAR_OFFSETS = 2_000
_SHOWN = 5
_AROUND_MAX = 12
_COLUMNS = ("first", "last", "producer_id", "producer_epoch", "sequence", "control", "fate")


def finding(
    tables: Tables,
    cls: str,
    says: str,
    frame: DataFrame,
    sample: Callable[[Any], Sample],
    order: Sequence[str] = ("topic", "partition", "offset"),
    count: int | None = None,
) -> list[Finding]:
    """The finding that a frame's rows are, in a list; an empty list when there are none."""
    count = frame.count() if count is None else count
    if not count:
        return []
    samples = [sample(row) for row in rows(frame.orderBy(*order).limit(tables.samples_max))]
    return [Finding(cls=cls, count=count, says=says, samples=explained(tables, cls, samples))]


def explained(tables: Tables, cls: str, samples: Sequence[Sample]) -> list[Sample]:
    """The samples, the first ten of them with what the log and the history say around them."""
    first = _with_batches(tables, [_with_transactions(tables, sample) for sample in samples[:SAMPLES_MAX]])
    return [*hidden.beside(tables, cls, first), *samples[SAMPLES_MAX:]]


def place(tables: Tables, row: Any) -> Sample:
    """Where an output is, by its topic's name on the cluster."""
    return {"topic": tables.topic(row["topic"]), "partition": row["partition"], "offset": row["offset"]}


def told(row: Any) -> Sample:
    """What an output's header says."""
    names = ("source_partition", "source_offset", "worker", "incarnation", "transaction")
    return {name: row[name] for name in names}


def position(tables: Tables, row: Any) -> Sample:
    """A committed position: where it points to, its place among the group's, and whose it is."""
    return {
        "topic": tables.input_topic,
        "partition": row["partition"],
        "offset": row["position"],
        "commit_offset": row["offset"],
        "worker": row["worker"],
        "incarnation": row["incarnation"],
        "transaction": row["transaction"],
    }


def _with_transactions(tables: Tables, sample: Sample) -> Sample:
    place = sample if sample["topic"] == tables.input_topic else sample.get("input")
    if place is None or place["offset"] is None:
        return sample
    found: list[Sample] = []
    for event in tables.events.of(OfTransaction):
        first, after = event.sources.get(str(place["partition"]), (0, 0))
        if first <= place["offset"] < after and tables.reads_input(event):
            found.append(_said(event))
    return {**sample, "transactions": found[:_AROUND_MAX]}


def _said(event: OfTransaction) -> Sample:
    ended = {"type": event.type} if isinstance(event, Outcome) else {}
    whose = {"at": event.at, "source": event.source, "incarnation": event.incarnation}
    return {**whose, "transaction": event.transaction, "event": event.kind, **ended}


def _with_batches(tables: Tables, samples: list[Sample]) -> list[Sample]:
    if not samples or not (tables.folder / "tables" / "batches.parquet").exists():
        return samples
    near = [
        (F.col("topic") == tables.role(s["topic"]))
        & (F.col("partition") == s["partition"])
        & (F.col("last") >= s["offset"] - _NEAR_OFFSETS)
        & (F.col("first") <= s["offset"] + _NEAR_OFFSETS)
        for s in samples
    ]
    log = rows(tables.log.where(reduce(Column.__or__, near)).orderBy("topic", "partition", "first"))
    return [{**sample, "batches": _neighbours(tables.role(sample["topic"]), sample, log)} for sample in samples]


def _neighbours(role: str, sample: Sample, near: list[Any]) -> list[Sample]:
    log = [row for row in near if (row["topic"], row["partition"]) == (role, sample["partition"])]
    own = next((i for i, row in enumerate(log) if row["first"] <= sample["offset"] <= row["last"]), None)
    if own is None:
        return []
    first = max(0, own - _SHOWN // 2)
    return [{name: row[name] for name in _COLUMNS} for row in log[first : first + _SHOWN]]
