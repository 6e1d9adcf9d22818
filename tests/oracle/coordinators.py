"""What the transaction coordinators decided, against the markers and batches in the logs ("The log decides").

A decision is a record PrepareCommit or PrepareAbort in __transaction_state: of a producer id and epoch, for the
partitions that it names. Each must have its marker in each of them, each marker that ends something its decision, and
what a marker ends must be of the decision's epoch.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tests.oracle.alignment import Alignment, Decision, Marker, align
from tests.oracle.case import Case, Partition, place_of
from tests.oracle.logs import OFFSETS, Batch, Log, Span
from tests.rundata import Row

_PREPARED = {"PrepareCommit": "commit", "PrepareAbort": "abort"}


@dataclass(frozen=True)
class Decided:
    """`log` is the coordinator's partition, `offset` the decision's there."""

    kind: str
    epoch: int
    version: int
    log: int
    offset: int
    coming: bool


class Coordinators:
    """Their logs: the decisions by producer id and partition, in order, and the transactions that go on."""

    def __init__(self, case: Case) -> None:
        self.decided: dict[tuple[int, Partition], list[Decided]] = defaultdict(list)
        self.ongoing: set[tuple[int, Partition]] = set()
        self.coming: set[tuple[int, int]] = set()  # the decisions of which more markers may come
        self.log_of: dict[int, int] = {}
        self.cut = {
            each["partition"]
            for each in case.run.internal
            if each["topic"] == "__transaction_state" and each["compacted"]
        }
        ids: dict[str, list[Row]] = defaultdict(list)
        for row in sorted(case.run.states, key=lambda each: (int(each["log"]), int(each["offset"]))):
            ids[row["transactional_id"]].append(row)
            self.log_of[row["producer_id"]] = row["log"]
        for rows in ids.values():
            self._read(case, rows)

    def _read(self, case: Case, rows: list[Row]) -> None:
        for row, after in zip(rows, [*rows[1:], None], strict=True):
            kind = _PREPARED.get(row["state"])
            for name in row["partitions"]:
                topic, _, partition = case.own(name).rpartition("/")
                lane = row["producer_id"], (topic, int(partition))
                if kind:
                    told = Decided(
                        kind, row["producer_epoch"], row["version"], row["log"], row["offset"], after is None
                    )
                    self.decided[lane].append(told)
                    if told.coming:
                        self.coming.add((told.log, told.offset))
                elif row["state"] == "Ongoing" and after is None:
                    self.ongoing.add(lane)


def judge(case: Case) -> None:
    known = Coordinators(case)
    late: set[tuple[str, int, int]] = set()
    for place, log in case.logs.items():
        producers = {producer for producer, there in known.decided if there == place} | set(log.spans)
        if place[0] == OFFSETS:  # the other producers there are those of other runs on the cluster
            producers &= set(known.log_of)
        for producer in sorted(producers):
            late |= set(_lane(case, known, log, producer))
        _older_coordinators(case, known, log)
    case.explain(row for row in case.run.outputs if (batch := _batch_of(case, row)) and batch in late)
    case.old = {(partition, first) for topic, partition, first in late if topic == OFFSETS}


def _batch_of(case: Case, row: Row) -> tuple[str, int, int] | None:
    batch = case.batch(place_of(row))
    return None if batch is None else (row["topic"], row["partition"], batch.first)


def _lane(case: Case, known: Coordinators, log: Log, producer: int) -> Iterator[tuple[str, int, int]]:
    """Judge the spans of one producer in one partition; gives the batches of an older epoch than their decision's."""
    spans = log.spans.get(producer, [])
    decided = known.decided.get((producer, (log.topic, log.partition)), [])
    ended = [span for span in spans if span.marker is not None]
    told = align(
        [Marker(span.marker.control or "", span.marker.epoch, not span.batches) for span in ended if span.marker],
        [Decision(each.kind, each.epoch, each.coming) for each in decided],
        cut=log.start > 0 or known.log_of.get(producer) in known.cut,
    )
    for span, number in zip(ended, told.of, strict=True):
        if number is not None:
            span.decision = decided[number].log, decided[number].offset
            yield from _epochs(case, log, span, decided[number])
    for number in (*told.stray, *told.contrary):
        marker = ended[number].marker
        assert marker is not None
        case.add("torn-transaction", log.topic, log.partition, marker.first)
    if known.log_of.get(producer) in known.cut:
        _undecided(case, log, ended, told)
    tail = spans[-1] if spans and spans[-1].marker is None else None
    _hung(case, known, log, producer, told, tail)


def _undecided(case: Case, log: Log, ended: list[Span], told: Alignment) -> None:
    """Where a coordinator's log was compacted, spans without a decision are a reason."""
    wrong = {*told.stray, *told.contrary}
    if any(of is None and ended[i].batches and i not in wrong for i, of in enumerate(told.of)):
        case.wonder("indeterminate", "undecided", f"{log.topic}/{log.partition}")


def _hung(case: Case, known: Coordinators, log: Log, producer: int, told: Alignment, tail: Span | None) -> None:
    """Decisions without a marker, and what stands behind the last marker of its producer."""
    here = producer, (log.topic, log.partition)
    spans = log.spans.get(producer, [])
    if tail is not None:
        coming = [each for each in known.decided.get(here, []) if each.coming]
        if coming:
            tail.decision = coming[-1].log, coming[-1].offset
        elif here not in known.ongoing:
            case.add("hung-transaction", log.topic, log.partition, tail.first)
    elif told.unheard and (log.topic == OFFSETS or case.whole(log.topic, log.partition)):
        if any((case.own(each["topic"]), each["partition"]) == here[1] for each in case.run.open_transactions):
            return  # the brokers say so of the same transaction
        last = [span.marker.first for span in spans if span.marker]
        case.add("hung-transaction", log.topic, log.partition, last[-1] + 1 if last else 0)


def _epochs(case: Case, log: Log, span: Span, decided: Decided) -> Iterator[tuple[str, int, int]]:
    """With transaction version 2 a transaction's batches have the epoch before its marker's; with others, up to it."""
    assert span.marker is not None
    own = decided.epoch - (decided.version >= 2)
    if decided.version >= 2 and decided.kind == "abort":  # a coordinator that fences raises the epoch once more
        own = min(own, max((batch.epoch for batch in span.batches), default=own))
    for batch in span.batches:
        if batch.epoch > own:
            case.add("torn-transaction", log.topic, log.partition, batch.first)
        elif batch.epoch < own and decided.kind == "commit":
            case.add("zombie-write", log.topic, log.partition, batch.first)
            yield log.topic, log.partition, batch.first


def _older_coordinators(case: Case, known: Coordinators, log: Log) -> None:
    """Markers of a coordinator epoch below that of an earlier marker of the same coordinator."""
    highest: dict[int, int] = {}
    markers = [batch for batch in log.batches if batch.control and batch.coordinator is not None]
    for number, batch in enumerate(markers):
        coordinator = known.log_of.get(batch.producer)
        if coordinator is None:
            continue
        epoch, before = batch.coordinator or 0, highest.get(coordinator, -1)
        coming = batch.span is not None and batch.span.decision in known.coming
        if epoch < before and not coming and not _sent_again(batch, markers[number + 1 :], before):
            case.add("zombie-write", log.topic, log.partition, batch.first)
        highest[coordinator] = max(epoch, before)


def _sent_again(batch: Batch, later: list[Batch], epoch: int) -> bool:
    """Whether the next marker of the producer only repeats this one, and is of the newer coordinator."""
    following = next((each for each in later if each.producer == batch.producer), None)
    if following is None or following.span is None or following.span.batches:
        return False
    return following.control == batch.control and (following.coordinator or 0) >= epoch


def sequences(case: Case, touched: set[Partition]) -> None:
    """Judge the sequence numbers where nothing else is wrong: outputs that are lost or doubled are findings already."""
    for place, log in case.logs.items():
        if log.topic != OFFSETS and place not in touched and case.whole(*place):
            _sequences(case, log)


def _sequences(case: Case, log: Log) -> None:
    """The sequence numbers of each producer epoch are contiguous, from 0 on. A zombie's are not looked at, and the
    first number may be any if its batch was aborted."""
    expected: dict[tuple[int, int], int] = {}
    highest: dict[int, int] = {}
    for batch in log.batches:
        old = batch.epoch < highest.get(batch.producer, -1)
        highest[batch.producer] = max(batch.epoch, highest.get(batch.producer, -1))
        if batch.control or batch.producer < 0:
            continue
        lane = batch.producer, batch.epoch
        first = None if log.start or batch.fate == "aborted" else 0
        due = None if old and batch.fate == "visible" else expected.get(lane, first)
        if due is not None and batch.sequence < due:
            case.add("duplicate", log.topic, log.partition, batch.first)
        elif due is not None and batch.sequence > due:
            case.add("lost", log.topic, log.partition, batch.first)
        expected[lane] = batch.sequence + batch.last - batch.first + 1
