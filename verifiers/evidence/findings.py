"""Turn a frame of anomalies into a finding: a count, up to ten samples, and their surroundings in log and history.

A sample has its coordinates (topic, partition, offset), the details that its check adds, `batches` (up to five batches
of the leader's log around the offset), `transactions` (events of transactions whose source ranges contain the input)
and `hidden` (up to five records that bear on it and that a read_committed reader does not see).
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from onceproof.harness.record.events import OfTransaction, Outcome
from onceproof.harness.record.results import SAMPLES_MAX, Finding
from onceproof.verifiers import hidden
from onceproof.verifiers.evidence.frames import rows
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
    """Return the finding for the rows of a frame, in a list; an empty list if the frame has no rows.

    `sample` makes a sample from a row, `order` are the columns that decide which rows become samples, and `count` is
    the number of rows if it is known.
    """
    if count == 0:
        return []
    first = rows(frame.orderBy(*order).limit(tables.samples_max))
    if not first:
        return []
    if count is None:  # a job is needed only if there may be more
        count = len(first) if len(first) < tables.samples_max else frame.count()
    samples = [sample(row) for row in first]
    return [Finding(cls=cls, count=count, says=says, samples=explained(tables, cls, samples))]


def explained(tables: Tables, cls: str, samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples of a finding, the first ten of them with their surroundings in the log and in the history."""
    first = _with_batches(tables, [_with_transactions(tables, sample) for sample in samples[:SAMPLES_MAX]])
    return [*hidden.beside(tables, cls, first), *samples[SAMPLES_MAX:]]


def place(tables: Tables, row: Any) -> Sample:
    """Return the coordinates of an output: topic (its name on the cluster), partition, offset."""
    return {"topic": tables.topic(row["topic"]), "partition": row["partition"], "offset": row["offset"]}


def told(row: Any) -> Sample:
    """Return an output's provenance header: source_partition, source_offset, worker, incarnation, transaction."""
    names = ("source_partition", "source_offset", "worker", "incarnation", "transaction")
    return {name: row[name] for name in names}


def position(tables: Tables, row: Any) -> Sample:
    """Return the sample of a committed offset, at the place to which it points: in the row's topic, or the input.

    `commit_offset` is the offset of the commit in the group's partition of __consumer_offsets; worker, incarnation and
    transaction are those that committed.
    """
    return {
        "topic": row.asDict().get("topic", tables.input_topic),
        "partition": row["partition"],
        "offset": row["position"],
        "commit_offset": row["offset"],
        "worker": row["worker"],
        "incarnation": row["incarnation"],
        "transaction": row["transaction"],
    }


def _with_transactions(tables: Tables, sample: Sample) -> Sample:
    """Return the sample with the events of the transactions that read its input."""
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
    """Return the samples, each with the batches of the leader's log around its offset."""
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
