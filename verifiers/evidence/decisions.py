"""The decisions of the transaction coordinators, and the spans in the partitions' logs.

A decision is a record PrepareCommit or PrepareAbort in __transaction_state: producer id, epoch, partitions, commit or
abort. A span is what one producer id wrote into one partition between two of its markers, and ends with a marker. In
each partition, the markers of a producer id must be those of the decisions that name the partition: one for each, in
the same order, of the same kind and epoch. Coordinators send markers again, so a marker that repeats the previous one
is legal if there is nothing between them.

`matching` says which span belongs to which decision.

If compaction has removed records of the coordinator's partition, earlier decisions are not known: the markers before
the first known decision are not judged, and `Lane.unknown` counts them. If the beginning of a partition was deleted,
the markers of the first decisions may be gone.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

import pyarrow.parquet as pq

_ROWS_AT_ONCE = 10_000
_OFFSET_BITS = 40
PREPARED = {"PrepareCommit": True, "PrepareAbort": False}
OPEN = ("Ongoing", *PREPARED)


@dataclass(frozen=True, kw_only=True, slots=True)  # speed: a run may have a million
class Decision:
    """A decision of a coordinator. `log` and `offset` are its place in __transaction_state.

    `epoch` is that of its markers, `version` the transaction version of the client, and `done` whether the coordinator
    has recorded that all markers are written.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    commit: bool
    partitions: frozenset[str]
    version: int
    log: int
    offset: int
    done: bool

    @property
    def number(self) -> int:
        """A number that no other decision has: its place in __transaction_state."""
        return (self.log << _OFFSET_BITS) + self.offset

    @property
    def data_epoch(self) -> int:
        """The epoch of the batches of a committed transaction: that of the client that called commit."""
        return self.epoch - 1 if self.version >= 2 else self.epoch

    def within(self, read: Set[str]) -> "Decision":
        """Return the decision without the partitions whose logs were not read."""
        if self.partitions <= read:  # speed
            return self
        return replace(self, partitions=once(self.partitions.intersection(read)))


class Span(NamedTuple):  # speed: as above; it is made in a fifth of the time
    """The batches of a producer id in a partition up to one of its markers; empty if `batches` is 0.

    `first` is the offset of the first record (of the marker, if the span is empty), and `lowest` and `highest` are the
    epochs of the batches. `marker` is the offset of the marker, None if the span is open; `commit`, `epoch` and
    `coordinator_epoch` are the marker's.
    """

    producer_id: int
    first: int
    batches: int
    lowest: int
    highest: int
    marker: int | None = None
    commit: bool = False
    epoch: int = -1
    coordinator_epoch: int = -1

    def ends(self, decision: Decision) -> bool:
        """Return whether the marker of the span is one of this decision."""
        return (self.commit, self.epoch) == (decision.commit, decision.epoch)


@dataclass(kw_only=True)
class Lane:
    """The spans of one producer id in one partition ("topic/partition"), and the decisions that name the partition.

    `of` gives the decision of each span, None where there is none. `strange` are spans whose marker matches no
    decision, `unended` decisions that have no marker. `unknown` is the number of spans that cannot be judged since
    earlier decisions are not known, `unaligned` of those in a lane that would take too long to match.
    """

    place: str
    spans: list[Span]
    decisions: list[Decision]
    of: list[Decision | None] = field(default_factory=list)
    strange: list[Span] = field(default_factory=list)
    unended: list[Decision] = field(default_factory=list)
    unknown: int = 0
    unaligned: int = 0


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table `states`, which are in the order of the coordinators' logs.

    Equal names and equal sets of partitions are the same object.
    """
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_ROWS_AT_ONCE):
            for row in batch.to_pylist():
                row["transactional_id"], row["state"] = intern(row["transactional_id"]), intern(row["state"])
                row["partitions"] = _set(tuple(row["partitions"]))
                yield row


def decisions(states: Iterable[Mapping[str, object]]) -> dict[int, list[Decision]]:
    """Return the decisions by producer id, in the order of the coordinator's log.

    `states` are rows of that table; those of a transactional id are in the order of their offsets. A coordinator that
    takes over a prepared transaction does not prepare it again, so each record is a decision.
    """
    prepared: dict[object, Mapping[str, object]] = {}
    found: dict[int, list[Decision]] = defaultdict(list)

    def decided(row: Mapping[str, object], *, done: bool) -> None:
        decision = _decision(row, done=done)
        found[decision.producer_id].append(decision)

    for row in states:
        name = row["transactional_id"]
        if before := prepared.pop(name, None):
            decided(before, done=row["state"] not in OPEN)
        if row["state"] in PREPARED:
            prepared[name] = row
    for row in prepared.values():
        decided(row, done=False)
    return found


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value


def _decision(row: Mapping[str, object], *, done: bool) -> Decision:
    partitions = row["partitions"]
    assert isinstance(partitions, Iterable)
    return Decision(
        transactional_id=str(row["transactional_id"]),
        producer_id=_int(row["producer_id"]),
        epoch=_int(row["producer_epoch"]),
        commit=PREPARED[str(row["state"])],
        partitions=once(frozenset(partitions)),
        version=_int(row["version"] or 0),
        log=_int(row["log"]),
        offset=_int(row["offset"]),
        done=done,
    )


@lru_cache(4_096)
def once(partitions: frozenset[str]) -> frozenset[str]:
    """Return equal sets as the same object, since most transactions of a producer have the same partitions."""
    return partitions


@lru_cache(4_096)
def _set(partitions: tuple[str, ...]) -> frozenset[str]:
    """Return the set of these partitions, as `once` does."""
    return once(frozenset(partitions))


def ongoing(states: Iterable[Mapping[str, object]]) -> dict[tuple[int, str], str]:
    """Return (producer id, "topic/partition") → transactional id, for each transaction that is open at the end."""
    last: dict[object, Mapping[str, object]] = {}
    for row in states:
        known = last.get(row["transactional_id"])
        if known is None or _int(row["offset"]) > _int(known["offset"]):
            last[row["transactional_id"]] = row
    found: dict[tuple[int, str], str] = {}
    for name, row in last.items():
        partitions = row["partitions"]
        assert isinstance(partitions, Iterable)
        if row["state"] in OPEN:
            found |= {(_int(row["producer_id"]), str(place)): str(name) for place in partitions}
    return found
