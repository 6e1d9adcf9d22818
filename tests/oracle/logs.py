"""The partitions' logs as their leaders have them: which records are committed, aborted or open.

Only the headers of batches are used. A transactional batch belongs to the transaction that the next control batch of
its producer id in the partition ends; without one it is open. Readers see committed records, and those that are in no
transaction, below the last stable offset: the first offset of the earliest open transaction.

    [0..9 p1] [10..14 p2] commit p1 [16..19 p1] abort p2      0..9 visible, 10..14 aborted, 16.. open, LSO 16
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from tests.rundata import Row, RunData

OFFSETS = "__consumer_offsets"


class Span:
    """What one producer wrote between two of its control batches. `decision` is set by `decisions`: None where no
    decision of a coordinator is known to be the one."""

    __slots__ = ("batches", "decision", "marker", "producer")

    def __init__(self, producer: int) -> None:
        self.producer = producer
        self.batches: list[Batch] = []
        self.marker: Batch | None = None
        self.decision: tuple[int, int] | None = None

    @property
    def first(self) -> int:
        return self.batches[0].first

    @property
    def committed(self) -> bool:
        return self.marker is not None and self.marker.control == "commit"


class Batch:
    __slots__ = ("control", "coordinator", "epoch", "first", "intact", "last", "producer", "sequence", "span")

    def __init__(self, row: Row) -> None:
        self.first: int = row["first"]
        self.last: int = row["last"]
        self.producer: int = row["producer_id"]
        self.epoch: int = row["producer_epoch"]
        self.sequence: int = row["sequence"]
        self.control: str | None = row["control"]
        self.coordinator: int | None = row["coordinator_epoch"]
        self.intact: bool | None = row["intact"]
        self.span: Span | None = None  # None: in no transaction

    @property
    def fate(self) -> str:
        if self.control is not None:
            return "control"
        if self.span is None:
            return "visible"
        return "open" if self.span.marker is None else "visible" if self.span.committed else "aborted"


class Log:
    """One partition; `start`, `end` and `high` are its log start, end for readers and high watermark."""

    def __init__(self, topic: str, pinned: Row, rows: list[Row]) -> None:
        self.topic, self.partition = topic, int(pinned["partition"])
        self.start, self.end, self.high = int(pinned["start"]), int(pinned["end"]), int(pinned["high_watermark"])
        self.batches: list[Batch] = []
        self.spans: dict[int, list[Span]] = defaultdict(list)
        current: dict[int, Span] = {}
        for row in sorted(rows, key=lambda each: (int(each["first"]), int(each["last"]))):
            if row["last"] < self.start:
                continue
            batch = Batch(row)
            self.batches.append(batch)
            if row["transactional"] or batch.control:
                self._into_span(batch, current)
        self._firsts = [batch.first for batch in self.batches]

    def _into_span(self, batch: Batch, current: dict[int, Span]) -> None:
        span = current.get(batch.producer)
        if span is None:
            span = current[batch.producer] = Span(batch.producer)
            self.spans[batch.producer].append(span)
        batch.span = span
        if batch.control is None:
            span.batches.append(batch)
        else:
            span.marker = batch
            del current[batch.producer]

    def at(self, offset: int) -> Batch | None:
        """The batch that holds an offset."""
        place = bisect_right(self._firsts, offset) - 1
        if place >= 0 and self.batches[place].last >= offset:
            return self.batches[place]
        return None

    def span_at(self, offset: int) -> Span | None:
        """The transaction that the record at an offset is in."""
        batch = self.at(offset)
        return batch.span if batch else None

    @property
    def stable(self) -> int:
        """The last stable offset, as the batches have it."""
        return min((batch.first for batch in self.batches if batch.fate == "open"), default=self.high)

    def visible(self) -> Iterator[Batch]:
        return (batch for batch in self.batches if batch.fate == "visible")

    def covered(self) -> int:
        """How many offsets between start and end the batches account for."""
        return sum(self._inside(batch, self.end) for batch in self.batches)

    def readable(self) -> int:
        """How many records a read_committed reader can see between start and end."""
        stable = min(self.end, self.stable)
        return sum(self._inside(batch, stable) for batch in self.batches if batch.fate == "visible")

    def _inside(self, batch: Batch, end: int) -> int:
        return max(0, min(batch.last, end - 1) - max(batch.first, self.start) + 1)


def logs(run: RunData) -> dict[tuple[str, int], Log]:
    """The logs of all topics of the pipeline, and of the groups' partitions of __consumer_offsets."""
    pinned = {(each["topic"], each["partition"]): each for each in run.partitions}
    pinned |= {(OFFSETS, each["partition"]): each for each in run.internal if each["topic"] == OFFSETS}
    rows: dict[Any, list[Row]] = defaultdict(list)
    for row in run.batches:
        place = row["topic"], row["partition"]
        if place in pinned and pinned[place]["leader"] == row["broker"]:
            rows[place].append(row)
    found = {}
    for (name, partition), each in pinned.items():
        topic = name.removeprefix(run.prefix)
        found[topic, partition] = Log(topic, each, rows[name, partition])
    return found
