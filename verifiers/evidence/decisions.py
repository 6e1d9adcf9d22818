"""Match the spans in the partitions' logs with the decisions of the transaction coordinators.

A decision is a record PrepareCommit or PrepareAbort in __transaction_state: producer id, epoch, partitions, commit or
abort. A span is what one producer id wrote into one partition between two of its markers, and ends with a marker. In
each partition, the markers of a producer id must be those of the decisions that name the partition: one for each, in
the same order, of the same kind and epoch. Coordinators send markers again, so a marker that repeats the previous one
is legal if there is nothing between them.

    decisions on output/3:   commit 7,  commit 8,  abort 9
    log of output/3:         [0..9] commit 7   commit 7   [12..20] commit 8   abort 9          matched
                             [0..9] commit 7   [11..15] commit 7   [17..20] commit 8           the second one is torn
                             [0..9] commit 7   [11..20] abort 9                                commit 8 has no marker

With transaction version 2 each transaction has an epoch of its own, and its markers have the next one (KIP-890). With
versions 0 and 1 many transactions have the same epoch, and the order decides.

If compaction has removed records of the coordinator's partition, earlier decisions are not known: the markers before
the first known decision are not judged, and `Lane.unknown` counts them. If the beginning of a partition was deleted,
the markers of the first decisions may be gone.

This module knows neither Spark nor the workers' history, so that `onceproof audit` uses it as well.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

PREPARED = {"PrepareCommit": True, "PrepareAbort": False}
OPEN = ("Ongoing", *PREPARED)


@dataclass(frozen=True, kw_only=True)
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
    def data_epoch(self) -> int:
        """The epoch of the batches of a committed transaction: that of the client that called commit."""
        return self.epoch - 1 if self.version >= 2 else self.epoch


@dataclass(frozen=True, kw_only=True)
class Span:
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
    decision, `unended` decisions that have no marker, and `unknown` is the number of spans that cannot be judged.
    """

    place: str
    spans: list[Span]
    decisions: list[Decision]
    of: list[Decision | None] = field(default_factory=list)
    strange: list[Span] = field(default_factory=list)
    unended: list[Decision] = field(default_factory=list)
    unknown: int = 0


def decisions(states: Iterable[Mapping[str, object]]) -> dict[int, list[Decision]]:
    """Return the decisions by producer id, in the order of the coordinator's log; `states` are rows of that table.

    A coordinator that takes over a prepared transaction does not prepare it again, so each record is a decision.
    """
    of_id: dict[object, list[Mapping[str, object]]] = defaultdict(list)
    for row in states:
        of_id[row["transactional_id"]].append(row)
    found: dict[int, list[Decision]] = defaultdict(list)
    for rows in of_id.values():
        rows.sort(key=_offset)
        for place, row in enumerate(rows):
            if row["state"] not in PREPARED:
                continue
            following = rows[place + 1] if place + 1 < len(rows) else None
            decision = _decision(row, done=following is not None and following["state"] not in OPEN)
            found[decision.producer_id].append(decision)
    return found


def _offset(row: Mapping[str, object]) -> int:
    return _int(row["offset"])


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
        partitions=frozenset(partitions),
        version=_int(row["version"] or 0),
        log=_int(row["log"]),
        offset=_offset(row),
        done=done,
    )


def ongoing(states: Iterable[Mapping[str, object]]) -> dict[tuple[int, str], str]:
    """Return (producer id, "topic/partition") → transactional id, for each transaction that is open at the end."""
    last: dict[object, Mapping[str, object]] = {}
    for row in sorted(states, key=_offset):
        last[row["transactional_id"]] = row
    found: dict[tuple[int, str], str] = {}
    for name, row in last.items():
        partitions = row["partitions"]
        assert isinstance(partitions, Iterable)
        if row["state"] in OPEN:
            found |= {(_int(row["producer_id"]), str(place)): str(name) for place in partitions}
    return found


def lanes(
    spans: Mapping[tuple[str, int], Sequence[Span]],
    decided: Mapping[int, Sequence[Decision]],
    *,
    partial: bool = False,
    cut: Collection[str] = (),
) -> Iterator[Lane]:
    """Yield a matched lane for each ("topic/partition", producer id) that has spans or decisions.

    `partial` says that earlier decisions may not be known, and `cut` are the partitions that do not begin at offset 0.
    """
    named: dict[tuple[str, int], list[Decision]] = defaultdict(list)
    for producer, each in decided.items():
        for decision in each:
            for place in decision.partitions:
                named[place, producer].append(decision)
    for place, producer in sorted(spans.keys() | named.keys()):
        ended = sorted(spans.get((place, producer), ()), key=lambda span: (span.marker is None, span.marker or 0))
        lane = Lane(place=place, spans=ended, decisions=named.get((place, producer), []))
        _match(lane, partial=partial, cut=place in cut)
        yield lane


_UNKNOWN = -1  # the number of matched decisions before the first known one

# The number of matched decisions after a span → the number before it, and the index of the span's decision.
Step = dict[int, tuple[int, int | None]]


def _match(lane: Lane, *, partial: bool, cut: bool) -> None:
    """Match the spans with the decisions, and fill `of`, `strange`, `unended` and `unknown` of the lane.

    With versions 0 and 1, an empty span may be a repeated marker or the next transaction, so all possible numbers of
    matched decisions are kept.
    """
    told = lane.decisions
    steps: list[Step] = []
    possible: Collection[int] = range(_UNKNOWN if partial else 0, len(told) + 1 if cut else 1)
    for place, span in enumerate(lane.spans):
        if span.marker is None:
            step: Step = {count: (count, None) for count in possible}
        else:
            left = sum(each.marker is not None and each.batches > 0 for each in lane.spans[place:])
            step = _after(span, told, possible) or _resume(lane, span, possible, left)
        steps.append(step)
        possible = step.keys()
    count = max(possible)
    lane.unended += [each for each in told[max(0, count) :] if each.done]
    for span, step in zip(reversed(lane.spans), reversed(steps), strict=True):
        lane.unknown += count == _UNKNOWN and span.batches > 0
        count, own = step[count]
        lane.of.append(None if own is None else told[own])
    lane.of.reverse()


def _after(span: Span, told: Sequence[Decision], possible: Iterable[int]) -> Step:
    """Return the numbers of decisions that may be matched after this span."""
    following: Step = {}
    for count in possible:
        if count == _UNKNOWN:
            following.setdefault(_UNKNOWN, (_UNKNOWN, None))
        after = max(0, count)
        if after < len(told) and span.ends(told[after]):
            following[after + 1] = count, after
        if count > 0 and not span.batches and span.ends(told[count - 1]):
            following.setdefault(count, (count, count - 1))
    return following


def _resume(lane: Lane, span: Span, possible: Collection[int], left: int) -> Step:
    """Return how the matching continues after a span whose marker is not the one that should come next.

    If the following decision has the same epoch, and there are no more spans (`left`, with this one) than decisions,
    the marker, which is of the other kind, stands in the place of that decision's. If it is the marker of a later
    decision, the decisions between have no marker. Otherwise the marker is strange.
    """
    told, count = lane.decisions, max(possible)
    if span.batches and left <= len(told) - count and told[count].epoch == span.epoch:
        lane.strange.append(span)
        return {count + 1: (count, None)}
    repeats = count > 0 and span.ends(told[count - 1])
    later = [place for place in range(count + 1, len(told)) if span.ends(told[place])]
    if later and not repeats:
        lane.unended += told[count : later[0]]
        return {later[0] + 1: (count, later[0])}
    if span.batches:
        lane.strange.append(span)
    return {each: (each, None) for each in possible}
