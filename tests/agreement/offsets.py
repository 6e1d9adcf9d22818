"""A batch of its producer for each committed offset, and a transaction of its own where its fate is another."""

from tests.agreement.decisions import end
from tests.agreement.spans import OFFSETS, Span, by_lane, everywhere, held, of_leaders, spans_of
from tests.rundata import Row, RunData

KINDS = {"visible": "commit", "aborted": "abort"}


def hold(run: RunData, commits: list[Row]) -> None:
    """Let each committed offset be in a batch of its producer, at a place of its own."""
    if not any(each["topic"] == OFFSETS for each in run.batches):
        return
    there, taken = held(run), set()
    for commit in sorted(commits, key=lambda each: float(each["offset"])):
        here = there.get((commit["log"], commit["offset"]))
        if (commit["log"], commit["offset"]) in taken or (here is not None and here["control"] is not None):
            commit["offset"], here = max(offset for log, offset in there if log == commit["log"]) + 1, None
        taken.add((commit["log"], commit["offset"]))
        if here is not None and here["producer_id"] == commit["producer_id"]:
            continue
        if here is None:
            _insert(run, commit)
        else:
            _divide(run, here, commit)
        there = held(run)


def part(run: RunData) -> None:
    """Let committed offsets with another fate than the first one of their span be in a transaction of their own, at
    the end of the log; of several, each in its own if their fates differ."""
    commits = by_lane(run)
    for lane, spans in spans_of(run).items():
        if lane[0] != OFFSETS:
            continue
        for span in spans:
            mine = sorted(
                (
                    each
                    for each in commits.get(lane, [])
                    if any(one["first"] <= each["offset"] <= one["last"] for one in span.data)
                ),
                key=lambda each: int(each["offset"]),
            )
            others = [each for each in mine if each["fate"] != mine[0]["fate"]]
            if others and span.kind is None:
                first = Span()
                first.data = [one for one in span.data if one["first"] < others[0]["offset"]]
                end(run, lane, first, KINDS[mine[0]["fate"]])
            for each in others:
                each["offset"] = 1 + max(offset for log, offset in held(run) if log == each["log"])
                _insert(run, each)


def _insert(run: RunData, commit: Row) -> None:
    log = [each for each in of_leaders(run, OFFSETS) if each["partition"] == commit["log"]]
    like = max((each for each in log if each["control"] is None), key=lambda each: int(each["first"]))
    for each in everywhere(run, like):
        run.batches.append({**each, **_batch_of(commit)})


def _batch_of(commit: Row) -> Row:
    names = ("producer_id", "producer_epoch", "transactional")
    place = {"first": commit["offset"], "last": commit["offset"], "records": 1, "sequence": 0, "fate": "visible"}
    return {**place, **{name: commit[name] for name in names}, "marker": None}


def _divide(run: RunData, batch: Row, commit: Row) -> None:
    """Put a batch into the middle of another producer's."""
    offset = commit["offset"]
    for each in everywhere(run, batch):
        rest = {**each, "first": offset + 1}
        run.batches.append({**each, **_batch_of(commit)})
        if rest["first"] <= rest["last"]:
            run.batches.append(rest)
        each["last"] = offset - 1
    run.batches = [each for each in run.batches if each["first"] <= each["last"]]
