"""Make the segments of a changed run say what its tables say became of its records.

What breaks a run changes the column `fate` of batches and of committed offsets, or adds committed offsets. A log in
which brokers would have written that has other control records, other decisions of the coordinator, and a batch for
each committed offset. `agree` writes these:

    column   output/0 [0..9 aborted] commit 10          log   [0..9] abort 10     and a decision of its own to abort it
    column   offset 44: open, the last of its producer  log   without its marker, and the decision is not complete
    commit   offset 45, in no batch                     log   a batch for it, and a marker if no other one follows

So a reader that knows only control records and producer ids comes to the same fates.
"""

from collections.abc import Iterable
from typing import Any

from tests.agreement.decisions import end, open_span, turn
from tests.agreement.offsets import KINDS, hold, part
from tests.agreement.spans import OFFSETS, NoSuchLog, Span, by_lane, held, spans_of
from tests.rundata import Row, RunData

__all__ = ["NoSuchLog", "agree"]


def agree(run: RunData) -> None:
    """Change batches and decisions of a run so that they give the fates that the run's tables have."""
    hold(run, [*run.commits, *run.other_commits])
    part(run)
    commits = by_lane(run)
    for lane, spans in spans_of(run).items():
        for span in spans:
            wanted = _wanted(span, commits.get(lane, []))
            if wanted is None:
                continue
            if wanted == "open":
                if span is not spans[-1]:
                    raise NoSuchLog(f"{lane}: open, and a marker of its producer follows")
                open_span(run, lane, span)
            elif span.kind is None and lane[0] == OFFSETS:
                end(run, lane, span, KINDS[wanted])
            elif span.kind != KINDS[wanted]:
                turn(run, lane, span, KINDS[wanted])
    _mark(run)


def _wanted(span: Span, commits: list[Row]) -> str | None:
    """The fate that the tables give what is in a span; None if they say nothing of it."""
    if not span.data:
        return None
    if span.data[0]["topic"] == OFFSETS:
        fates = {
            each["fate"] for each in commits if any(one["first"] <= each["offset"] <= one["last"] for one in span.data)
        }
    else:
        fates = {each["fate"] for each in span.data}
    if len(fates) > 1:
        raise NoSuchLog(f"{span.data[0]['topic']}: one span with the fates {sorted(fates)}")
    return fates.pop() if fates else None


def _mark(run: RunData) -> None:
    """Write again, of each batch and each committed offset, which marker ended its transaction."""
    markers: dict[Any, int | None] = {}
    for (topic, partition, _), spans in spans_of(run).items():
        for span in spans:
            for each in span.data:
                markers[topic, partition, each["first"]] = None if span.marker is None else span.marker["first"]
    for each in run.batches:
        if each["control"] is None and each["transactional"]:
            key = each["topic"], each["partition"], each["first"]
            each["marker"] = markers.get(key, each["marker"])
    _mark_commits(run, (*run.commits, *run.other_commits))


def _mark_commits(run: RunData, commits: Iterable[Row]) -> None:
    batches = held(run)
    for each in commits:
        batch = batches.get((each["log"], each["offset"]))
        if each["marker"] is not None and each["marker"] < each["offset"]:
            continue  # a request that came late: the table still names the transaction that sent it
        if batch is not None and batch["control"] is None:
            each["marker"] = batch["marker"] if batch["transactional"] else None
