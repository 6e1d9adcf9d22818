"""Say what is wrong in a matched lane: where the log of a partition is not what the transaction coordinators decided.

    for lane in matching.lanes(spans, decisions):
        for cls, offset, details in problems(lane, open_at): …

This module knows neither Spark nor a run, so that `onceproof audit` uses it as well. `verifiers/coordinator.py`
describes the rules.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from onceproof.verifiers.evidence.decisions import Decision, Lane, Span

COORDINATORS = "__transaction_state"
SAYS = {
    "torn-transaction": "markers end transactions in another way than their coordinator decided",
    "hung-transaction": "decisions have no marker in a partition, or batches belong to no transaction of a coordinator",
    "zombie-write": "markers of an older coordinator, or batches of an older producer epoch, were accepted",
}
UNALIGNED = "their partition has too many transactions that do not fit the coordinators' decisions"
Sample = dict[str, Any]


def problems(
    lane: Lane, open_at: dict[tuple[int, str], str], *, whole: bool = True
) -> Iterator[tuple[str, int, Sample]]:
    """Yield the class, offset and details of what is wrong in a lane; `open_at` is `decisions.ongoing`.

    A transaction that its coordinator knows as open is no problem, nor is a decision whose markers are still to come.
    If the partition is not `whole`, a marker that is not there may be in what is missing of it, unless batches wait for
    it.
    """
    open_span = bool(lane.spans) and lane.spans[-1].marker is None
    for span in lane.strange:
        assert span.marker is not None
        yield "torn-transaction", span.marker, _of_span(span)
    for span in lane.spans:
        if span.marker is None and (span.producer_id, lane.place) not in open_at and not lane.unended:
            yield "hung-transaction", span.first, _of_span(span)
    for decision in lane.unended if whole or open_span else ():
        yield "hung-transaction", _last_open(lane), _of_decision(decision)
    highest = -1
    for span in lane.spans:
        if span.marker is not None and span.coordinator_epoch < highest:
            yield "zombie-write", span.marker, {**_of_span(span), "highest_coordinator_epoch": highest}
        highest = max(highest, span.coordinator_epoch)
    for span, decided in zip(lane.spans, lane.of, strict=True):
        if decided is None or not span.batches or not decided.commit:
            continue
        if span.highest > decided.data_epoch:
            yield "torn-transaction", span.first, {**_of_span(span), **_of_decision(decided)}
        elif span.lowest < decided.data_epoch:
            yield "zombie-write", span.first, {**_of_span(span), **_of_decision(decided)}


def older_coordinators(lanes: Sequence[Lane]) -> Iterator[tuple[str, int, Sample]]:
    """Yield the place, offset and details of markers of a lower epoch than an earlier one of their coordinator.

    The earlier one is another producer's: `problems` compares those of one producer, as brokers do. A marker that an
    old coordinator sent may come in behind the first one of its successor. But the successor then sends it again, since
    the old one can no longer record that it is written. So a marker is only wrong if it stays the last one of its
    decision, and the coordinator has recorded that the markers are written.
    """
    places: dict[str, list[Lane]] = {}
    for lane in lanes:
        places.setdefault(lane.place, []).append(lane)
    for place, mine in places.items():  # one after the other, since a run may have a million spans
        for offset, details in _older_in(mine):
            yield place, offset, details


def _older_in(lanes: Sequence[Lane]) -> Iterator[tuple[int, Sample]]:
    """Yield the offset and details of the markers in one partition that `older_coordinators` describes."""
    if len({span.coordinator_epoch for lane in lanes for span in lane.spans if span.marker is not None}) < 2:  # speed
        return
    of: dict[int, dict[int, tuple[Span, Decision]]] = {}
    for lane in lanes:
        for span, decision in zip(lane.spans, lane.of, strict=True):
            if decision is not None:
                assert span.marker is not None  # a span belongs to a decision by its marker
                of.setdefault(decision.log, {})[span.marker] = span, decision
    for markers in of.values():
        last = {decision.offset: marker for marker, (_, decision) in sorted(markers.items())}
        highest, own = -1, dict[int, int]()
        for marker, (span, decision) in sorted(markers.items()):
            mine = own.get(span.producer_id, -1)
            last_one = decision.done and last[decision.offset] == marker
            if last_one and mine <= span.coordinator_epoch < highest:
                yield marker, {**_of_span(span), "highest_coordinator_epoch": highest}
            own[span.producer_id] = max(mine, span.coordinator_epoch)
            highest = max(highest, span.coordinator_epoch)


def _last_open(lane: Lane) -> int:
    """Return the offset at which the marker of a decision is missing: in the open span, or after the last one."""
    last = lane.spans[-1] if lane.spans else None
    if last is None:
        return 0
    return last.first if last.marker is None else last.marker + 1


def _of_span(span: Span) -> Sample:
    marker = {"marker": span.marker, "kind": "commit" if span.commit else "abort", "marker_epoch": span.epoch}
    epochs = {"lowest_epoch": span.lowest, "highest_epoch": span.highest}
    return {
        "producer_id": span.producer_id,
        "first": span.first,
        "last": span.first if span.marker is None else span.marker,
        "batches": span.batches,
        **epochs,
        **({} if span.marker is None else {**marker, "coordinator_epoch": span.coordinator_epoch}),
    }


def _of_decision(decision: Decision) -> Sample:
    return {
        "transactional_id": decision.transactional_id,
        "decision": "commit" if decision.commit else "abort",
        "decision_epoch": decision.epoch,
        "decided_at": f"{COORDINATORS}/{decision.log} offset {decision.offset}",
    }
