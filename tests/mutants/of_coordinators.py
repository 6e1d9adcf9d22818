"""Mutants of what the transaction coordinators decided, and of the markers that should say the same."""

from collections.abc import Iterator

from onceproof.verifiers.evidence import decisions, matching
from onceproof.verifiers.evidence.decisions import Span
from tests.mutants.catalogue import (
    ABORTS,
    OFFSETS,
    Expected,
    mutant,
    pick,
)
from tests.rundata import STRANGER, Row, RunData

_LEADERS = ("broker1", "broker2", "broker3")


def markers(run: RunData, topic: str, partition: int, producer: int) -> list[int]:
    """The offsets of a producer's markers in a partition, in order."""
    name = topic if topic == OFFSETS else run.prefix + topic
    there = [each for each in run.batches if (each["topic"], each["partition"]) == (name, partition)]
    return sorted({each["first"] for each in there if each["control"] and each["producer_id"] == producer})


def at(run: RunData, topic: str, partition: int, offset: int) -> list[Row]:
    """The batch at an offset, on each replica."""
    return [each for each in run.log(topic, partition) if each["first"] <= offset <= each["last"]]


def decided(run: RunData, producer: int, place: str) -> list[Row]:
    """The decisions of a producer's coordinator that name a partition, in order."""
    mine = [each for each in run.states if each["producer_id"] == producer and each["state"] in decisions.PREPARED]
    return [each for each in sorted(mine, key=lambda each: int(each["offset"])) if place in each["partitions"]]


def last_of_partition(run: RunData, topic: str, partition: int) -> tuple[Row, int]:
    """A batch of the last transaction of its producer in a partition, and the offset of its marker."""
    data = [each for each in run.log(topic, partition) if each["control"] is None and each["fate"] == "visible"]
    batch = max(data, key=lambda each: int(each["last"]))
    return batch, batch["marker"]


@mutant(ABORTS)
def commit_marker_that_nobody_decided(run: RunData) -> Expected:
    """A commit marker stands in the middle of a producer's last transaction, whose own marker ends the rest."""
    for batch, marker in _last_transactions(run, "stock"):
        place = batch["partition"]
        middle = (batch["first"] + batch["last"]) // 2
        run._shift("stock", place, middle + 1, 1)
        for each in at(run, "stock", place, batch["first"]):
            [ending] = [one for one in at(run, "stock", place, marker + 1) if one["broker"] == each["broker"]]
            half = middle - each["first"] + 1
            rest = {**each, "first": middle + 2, "records": each["last"] - middle - 1}
            rest["sequence"] = each["sequence"] + half
            run.batches += [rest, {**ending, "first": middle + 1, "last": middle + 1}]
            each |= {"last": middle, "records": half, "marker": middle + 1}
        return {"torn-transaction": {("stock", place, marker + 1)}}
    raise LookupError("no last transaction with a batch of four records")


def _last_transactions(run: RunData, topic: str) -> Iterator[tuple[Row, int]]:
    for partition in range(3):
        batch, marker = last_of_partition(run, topic, partition)
        alone = [b for b in run.log(topic, partition) if b["marker"] == marker and b["broker"] == batch["broker"]]
        if len(alone) == 1 and batch["last"] - batch["first"] >= 3 and marker == batch["last"] + 1:
            yield batch, marker


@mutant(ABORTS)
def decision_of_another_partition(run: RunData) -> Expected:
    """The coordinator's decision does not name a partition in which the marker of its transaction stands."""
    batch, marker = last_of_partition(run, "stock", 0)
    decision = decided(run, batch["producer_id"], batch["topic"] + "/0")[-1]
    decision["partitions"] = [each for each in decision["partitions"] if each != batch["topic"] + "/0"]
    return {"torn-transaction": {("stock", 0, marker)}}


@mutant(ABORTS)
def decision_without_its_marker(run: RunData) -> Expected:
    """The coordinator decided a transaction of one partition more, and says that all markers are written."""
    batch, _ = last_of_partition(run, "stock", 0)
    producer = batch["producer_id"]
    everything = [
        each for each in run.states if each["producer_id"] == producer and each["state"] in decisions.PREPARED
    ]
    run.decide(max(everything, key=lambda each: int(each["offset"])), [batch["topic"] + "/0"])
    return {"hung-transaction": {("stock", 0, markers(run, "stock", 0, producer)[-1] + 1)}}


@mutant(ABORTS)
def decision_of_the_other_kind(run: RunData) -> Expected:
    """The coordinator decided to abort a transaction; in each of its partitions stands a commit marker."""
    batch, _ = last_of_partition(run, "stock", 0)
    producer = batch["producer_id"]
    everything = [each for each in run.states if each["producer_id"] == producer]
    decision = max(
        (each for each in everything if each["state"] == "PrepareCommit"), key=lambda each: int(each["offset"])
    )
    decision["state"] = "PrepareAbort"
    places = set()
    for place in decision["partitions"]:
        topic, _, partition = place.removeprefix(run.prefix).rpartition("/")
        places.add((topic, int(partition), markers(run, topic, int(partition), producer)[-1]))
    return {"torn-transaction": places}


@mutant(ABORTS)
def marker_again(run: RunData) -> Expected:
    """Harmless: the coordinator sent the marker of the last transaction once more."""
    _, marker = last_of_partition(run, "stock", 0)
    [end] = {each["end"] for each in [run.pinned("stock", 0)]}
    again = [{**each, "first": end, "last": end} for each in at(run, "stock", 0, marker) if each["control"] is not None]
    run.batches += again
    run.pinned("stock", 0).update(end=end + 1, high_watermark=end + 1)
    return {}


@mutant(ABORTS)
def coordinator_epoch_goes_back(run: RunData) -> Expected:
    """The last marker of a producer in a partition is of an older coordinator than the one before it."""
    batch, _ = last_of_partition(run, "stock", 0)
    *_, before, last = markers(run, "stock", 0, batch["producer_id"])
    for each in at(run, "stock", 0, before):
        each["coordinator_epoch"] = 7
    return {"zombie-write": {("stock", 0, last)}}


@mutant(ABORTS)
def marker_of_a_stranger_that_nobody_decided(run: RunData) -> Expected:
    """A marker to abort stands behind a record of a producer that no coordinator knows."""
    row = pick(run, "stock")
    run.insert_aborted("stock", 0, row["offset"])
    run.states = [each for each in run.states if each["producer_id"] != STRANGER]
    return {"torn-transaction": {("stock", 0, row["offset"] + 2)}}


@mutant(ABORTS)
def markers_without_the_transactional_flag(run: RunData) -> Expected:
    """Harmless: the markers say that they are control batches, and not that they are transactional."""
    for each in run.batches:
        each["transactional"] = each["transactional"] and each["control"] is None
    return {}


# Transaction version 2 (KIP-890): each transaction has an epoch of its own.


def version_2(run: RunData) -> RunData:
    """Give each transaction an epoch of its own: data has it, and marker and decision have the next one."""
    held = [each for each in run.batches if each["transactional"] or each["control"]]
    spans: dict[tuple[str, int], list[Span]] = {}
    for batch in held:
        marker = batch["first"] if batch["control"] else batch["marker"]
        lane = spans.setdefault((f"{batch['topic']}/{batch['partition']}", batch["producer_id"]), [])
        if any(each.marker == marker for each in lane):
            continue
        mine = [each for each in held if _lane(each) == _lane(batch)]
        ended = [each for each in mine if each["marker"] == marker]
        [(kind, epoch)] = {
            (each["control"], each["producer_epoch"]) for each in mine if each["control"] and each["first"] == marker
        }
        lane.append(
            Span(
                producer_id=batch["producer_id"],
                first=min((each["first"] for each in ended), default=marker),
                batches=len(ended),
                lowest=epoch,
                highest=epoch,
                marker=marker,
                commit=kind == "commit",
                epoch=epoch,
                coordinator_epoch=0,
            )
        )
    told = decisions.decisions(run.states)
    number = {
        (each.log, each.offset): count
        for mine in told.values()
        for count, each in enumerate(sorted(mine, key=lambda each: each.offset))
    }
    epochs: dict[tuple[str, int, int | None], int] = {}
    for lane_ in matching.lanes(spans, told):
        latest = 0
        for span, decision in zip(lane_.spans, lane_.of, strict=True):
            if decision is not None:
                latest = number[decision.log, decision.offset]
            epochs[lane_.place, span.producer_id, span.marker] = latest  # a repeated marker has that of the first one
    for batch in held:
        marker = batch["first"] if batch["control"] else batch["marker"]
        epoch = epochs[f"{batch['topic']}/{batch['partition']}", batch["producer_id"], marker]
        batch["producer_epoch"] = epoch + (batch["control"] is not None)
        if batch["control"] is None and batch["topic"] != OFFSETS:
            batch["sequence"] = 0
    renumber(held)
    for commit in run.commits:
        commit["producer_epoch"] = epochs[f"{OFFSETS}/{commit['log']}", commit["producer_id"], commit["marker"]]
    for state in run.states:
        state["version"] = 2
    for producer, decided_ in told.items():
        done = 0
        for state in sorted(
            (s for s in run.states if s["producer_id"] == producer), key=lambda each: int(each["offset"])
        ):
            state["producer_epoch"] = done + (state["state"] in decisions.PREPARED)
            done += state["state"] in decisions.PREPARED
        assert done == len(decided_)
    return run


def _lane(batch: Row) -> tuple[str, int, int]:
    return batch["topic"], batch["partition"], batch["producer_id"]


def renumber(held: list[Row]) -> None:
    """Let sequence numbers begin at 0 with each epoch."""
    ends: dict[tuple[object, ...], int] = {}
    for batch in sorted(held, key=lambda each: int(each["first"])):
        if batch["control"] is None and batch["topic"] != OFFSETS:
            lane = (*_lane(batch), batch["producer_epoch"], batch["broker"])
            batch["sequence"] = ends.get(lane, 0)
            ends[lane] = batch["sequence"] + batch["last"] - batch["first"] + 1


@mutant(ABORTS)
def epoch_for_each_transaction(run: RunData) -> Expected:
    """Harmless: the run with transaction version 2, in which each transaction has an epoch of its own."""
    version_2(run)
    return {}


@mutant(ABORTS)
def batch_of_the_next_epoch_before_the_marker(run: RunData) -> Expected:
    """Transaction version 2: a batch of the next transaction stands before the marker of this one (KAFKA-19446)."""
    version_2(run)
    batch, _ = last_of_partition(run, "stock", 0)
    for each in at(run, "stock", 0, batch["first"]):
        each["producer_epoch"] += 1
        each["sequence"] = 0
    return {"torn-transaction": {("stock", 0, batch["first"])}}


@mutant(ABORTS)
def batch_of_the_last_epoch_in_a_transaction(run: RunData) -> Expected:
    """Transaction version 2: a batch of an earlier transaction's epoch was committed with this one."""
    version_2(run)
    row = pick(run, "stock")
    batch, _ = last_of_partition(run, "stock", row["partition"])
    mine = [each for each in run.log("stock", row["partition"]) if each["broker"] == batch["broker"]]
    before = [each for each in mine if each["control"] is None and _lane(each) == _lane(batch)]
    *_, earlier, last = sorted(before, key=lambda each: int(each["first"]))
    for each in at(run, "stock", row["partition"], last["first"]):
        each["producer_epoch"] = earlier["producer_epoch"]
        each["sequence"] = earlier["sequence"] + earlier["last"] - earlier["first"] + 1
    return {"zombie-write": {("stock", row["partition"], last["first"])}}
