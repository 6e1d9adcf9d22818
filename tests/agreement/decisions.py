"""Markers of another kind, or none, or one more, and the coordinators' decisions that go with them."""

from tests.agreement.spans import Lane, NoSuchLog, Span, everywhere, lane_of
from tests.rundata import Row, RunData


def turn(run: RunData, lane: Lane, span: Span, kind: str) -> None:
    """Let the marker of a span, and the decision for it, be of the other kind."""
    if span.marker is None:
        raise NoSuchLog(f"{lane}: {kind}, and no marker follows")
    epoch = max(each["producer_epoch"] for each in span.data)
    decision = _decision(run, lane, span)
    for each in everywhere(run, span.marker):
        each["control"] = kind
        each["producer_epoch"] = epoch if decision["version"] < 2 or kind == "commit" else each["producer_epoch"]
    place = f"{lane[0]}/{lane[1]}"
    decision["partitions"] = [each for each in decision["partitions"] if each != place]
    _decide(run, decision, place, kind, span.marker["producer_epoch"])
    if kind == "commit":  # nobody has raised the epoch, as a coordinator does that aborts
        for each in run.states[-2:]:
            each["version"] = min(each["version"], 0 if epoch == span.marker["producer_epoch"] else each["version"])


def open_span(run: RunData, lane: Lane, span: Span) -> None:
    """Take the marker of a span away; its coordinator has not told that all markers are written."""
    if span.marker is None:
        return
    decision = _decision(run, lane, span)
    done = _completed(run, decision)
    gone = {id(each) for each in everywhere(run, span.marker)}
    run.batches = [each for each in run.batches if id(each) not in gone]
    run.states = [each for each in run.states if each is not done]
    span.marker = None


def end(run: RunData, lane: Lane, span: Span, kind: str) -> None:
    """Put a marker at the end of the groups' log, for a span that has none, and let the coordinator decide it."""
    offset = 1 + max(each["last"] for each in run.batches if (each["topic"], each["partition"]) == lane[:2])
    ending = {"first": offset, "last": offset, "records": 1, "sequence": -1, "control": kind, "fate": "control"}
    last = span.data[-1]
    coordinator = max(each["coordinator_epoch"] or 0 for each in run.batches)
    for each in everywhere(run, last):
        run.batches.append({**each, **ending, "transactional": True, "coordinator_epoch": coordinator})
    mine = [each for each in run.states if each["producer_id"] == lane[2] and each["state"].startswith("Prepare")]
    named = sum(f"{lane[0]}/{lane[1]}" in each["partitions"] for each in mine)
    if named >= len({each["first"] for each in run.batches if each["control"] and lane_of(each) == lane}):
        return  # one of the decisions has been waiting for this marker
    _decide(run, max(mine, key=lambda each: int(each["offset"])), f"{lane[0]}/{lane[1]}", kind, last["producer_epoch"])


def _decision(run: RunData, lane: Lane, span: Span) -> Row:
    """The coordinator's decision that a span's marker carries out: the one of the same number, or of its epoch."""
    place, producer = f"{lane[0]}/{lane[1]}", lane[2]
    mine = [
        each
        for each in run.states
        if each["producer_id"] == producer and each["state"].startswith("Prepare") and place in each["partitions"]
    ]
    mine.sort(key=lambda each: int(each["offset"]))
    assert span.marker is not None
    own = [each for each in mine if each["producer_epoch"] == span.marker["producer_epoch"]]
    if len(own) == 1:
        return own[0]
    if span.number >= len(mine):
        raise NoSuchLog(f"{lane}: no decision for the marker at {span.marker['first']}")
    return mine[span.number]


def _completed(run: RunData, decision: Row) -> Row | None:
    """The record behind a decision with which its coordinator says that all markers are written."""
    later = [
        each
        for each in run.states
        if each["transactional_id"] == decision["transactional_id"] and each["offset"] > decision["offset"]
    ]
    following = min(later, key=lambda each: int(each["offset"]), default=None)
    return following if following and following["state"].startswith("Complete") else None


def _decide(run: RunData, behind: Row, place: str, kind: str, epoch: int) -> None:
    """Let the coordinator decide of one partition alone, right behind another decision."""
    for each in run.states:
        if each["log"] == behind["log"]:
            each["offset"] *= 4
    done = _completed(run, behind)
    after = done["offset"] if done else behind["offset"]
    if not behind["partitions"]:
        run.states = [each for each in run.states if each is not behind and each is not done]
    for step, (state, places) in enumerate(
        ((f"Prepare{kind.title()}", [place]), (f"Complete{kind.title()}", [])), start=1
    ):
        told = {"offset": after + step, "state": state, "partitions": places, "producer_epoch": epoch}
        run.states.append({**behind, **told})
