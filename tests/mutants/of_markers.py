"""Mutants of markers and decisions in the middle of a run, and with an epoch for each transaction."""

from collections.abc import Iterable

from tests.mutants.catalogue import (
    ABORTS,
    OFFSETS,
    Expected,
    mutant,
)
from tests.mutants.of_coordinators import at, decided, last_of_partition, markers, version_2
from tests.mutants.of_memberships import span_of
from tests.packing import Place
from tests.rundata import Row, RunData

_COMMITTER, _KILLED = 1000, 1  # producer ids of the run `aborts`: of worker 0, and of worker 1
_EPOCH = 2  # of worker 1's producer, when it had been killed


def _append_marker(run: RunData, topic: str, partition: int, like: Iterable[Row], **values: object) -> int:
    """Put a marker like another one at the end of a partition, on each replica; returns its offset."""
    end = run.pinned(topic, partition)
    offset: int = end["end"]
    name = run.prefix + topic
    run.batches += [
        {**each, "topic": name, "partition": partition, "first": offset, "last": offset, **values} for each in like
    ]
    end["end"] = end["high_watermark"] = offset + 1
    return offset


def _last_markers(run: RunData, topic: str, partition: int) -> list[Row]:
    """The last marker of the producer that wrote the end of a partition, on each replica."""
    _, marker = last_of_partition(run, topic, partition)
    return [each for each in at(run, topic, partition, marker) if each["control"]]


@mutant(ABORTS)
def marker_again_of_an_older_coordinator(run: RunData) -> Expected:
    """An older coordinator sent the marker of the last transaction once more, and the broker took it."""
    for each in run.log("stock", 0):
        if each["control"]:
            each["coordinator_epoch"] += 5
    offset = _append_marker(run, "stock", 0, _last_markers(run, "stock", 0), coordinator_epoch=4)
    return {"zombie-write": {("stock", 0, offset)}}


@mutant(ABORTS)
def marker_again_of_a_newer_coordinator(run: RunData) -> Expected:
    """Harmless: a coordinator that took over sent the marker of the last transaction once more."""
    _append_marker(run, "stock", 0, _last_markers(run, "stock", 0), coordinator_epoch=50)
    return {}


@mutant(ABORTS)
def marker_again_with_an_epoch_for_each_transaction(run: RunData) -> Expected:
    """Harmless: with transaction version 2, the coordinator sent the marker of the last transaction once more."""
    version_2(run)
    _append_marker(run, "stock", 0, _last_markers(run, "stock", 0))
    return {}


@mutant(ABORTS)
def marker_where_nothing_was_written(run: RunData) -> Expected:
    """Harmless: a transaction names a partition to which it wrote nothing, and its marker stands there."""
    like = [each for each in run.log("stock", 2) if each["control"] and each["producer_epoch"] == _EPOCH]
    last = [each for each in like if each["first"] == max(one["first"] for one in like)]
    _append_marker(run, "stock", 0, last)
    decided(run, _KILLED, f"{run.prefix}stock/2")[-1]["partitions"].append(f"{run.prefix}stock/0")
    return {}


@mutant(ABORTS)
def decision_of_a_partition_without_a_marker(run: RunData) -> Expected:
    """The coordinator's last decision names a partition to which its producer never wrote, and no marker is there."""
    decided(run, _KILLED, f"{run.prefix}stock/2")[-1]["partitions"].append(f"{run.prefix}stock/0")
    return {"hung-transaction": {("stock", 0, 0)}}


@mutant(ABORTS)
def decision_without_the_offsets(run: RunData) -> Expected:
    """The coordinator's decision does not name the group's log, in which the marker of its transaction stands."""
    decision = decided(run, _KILLED, f"{run.prefix}stock/2")[-1]
    [place] = [each for each in decision["partitions"] if each.startswith(OFFSETS)]
    decision["partitions"].remove(place)
    log = int(place.rpartition("/")[2])
    return {"torn-transaction": {(OFFSETS, log, markers(run, OFFSETS, log, _KILLED)[-1])}}


@mutant(ABORTS)
def last_decision_missing(run: RunData) -> Expected:
    """The coordinator decided nothing of a producer's last transaction, whose markers stand in all its partitions."""
    decision = decided(run, _KILLED, f"{run.prefix}stock/2")[-1]
    before = decided(run, _KILLED, f"{run.prefix}stock/2")[-2]
    name = decision["transactional_id"]
    run.states = [
        each for each in run.states if each["transactional_id"] != name or each["offset"] <= before["offset"] + 1
    ]
    places = set()
    for place in decision["partitions"]:
        topic, _, partition = place.removeprefix(run.prefix).rpartition("/")
        places.add((topic, int(partition), markers(run, topic, int(partition), _KILLED)[-1]))
    return {"torn-transaction": places}


@mutant(ABORTS)
def decision_to_abort_without_its_marker(run: RunData) -> Expected:
    """In the middle of the run, the coordinator decided to abort a transaction of one partition; no marker of it is
    there, and those of all other decisions are."""
    place = f"{run.prefix}stock/0"
    for each in run.states:
        each["offset"] *= 4
    decision = decided(run, _COMMITTER, place)[20]
    told = {**decision, "state": "PrepareAbort", "partitions": [place]}
    ended = min(
        each["offset"]
        for each in run.states
        if each["transactional_id"] == decision["transactional_id"] and each["offset"] > decision["offset"]
    )
    run.states += [
        {**told, "offset": ended + 1},
        {**told, "offset": ended + 2, "state": "CompleteAbort", "partitions": []},
    ]
    return {"hung-transaction": {("stock", 0, markers(run, "stock", 0, _COMMITTER)[-1] + 1)}}


@mutant(ABORTS)
def decision_missing_with_an_epoch_for_each_transaction(run: RunData) -> Expected:
    """With transaction version 2, the coordinator decided nothing of a transaction in the middle of the run."""
    version_2(run)
    decision = decided(run, _COMMITTER, f"{run.prefix}stock/0")[20]
    ended = min(
        (
            each
            for each in run.states
            if each["transactional_id"] == decision["transactional_id"] and each["offset"] > decision["offset"]
        ),
        key=lambda each: int(each["offset"]),
    )
    run.states = [each for each in run.states if each is not decision and each is not ended]
    places = set()
    for place in decision["partitions"]:
        name, _, partition = place.rpartition("/")
        [marker] = {
            each["first"]
            for each in run.batches
            if (each["topic"], each["partition"]) == (name, int(partition))
            and each["control"]
            and (each["producer_id"], each["producer_epoch"]) == (_COMMITTER, decision["producer_epoch"])
        }
        places.add((name.removeprefix(run.prefix), int(partition), marker))
    return {"torn-transaction": places}


@mutant(ABORTS)
def commit_marker_in_the_middle_of_the_run(run: RunData) -> Expected:
    """A commit marker that nobody decided stands in the middle of a transaction, and its producer went on. With one
    epoch the order decides: the producer's last marker there is one too many."""
    _doubly_ended(run)
    return {"torn-transaction": {("stock", 0, markers(run, "stock", 0, _COMMITTER)[-1])}}


@mutant(ABORTS)
def commit_marker_in_the_middle_with_an_epoch_for_each_transaction(run: RunData) -> Expected:
    """The same with transaction version 2: the epochs say which transaction has two markers, and its second half comes
    after a marker with a higher epoch."""
    version_2(run)
    middle, marker = _doubly_ended(run)
    return {"torn-transaction": {("stock", 0, marker)}, "zombie-write": {("stock", 0, middle + 1)}}


def _doubly_ended(run: RunData) -> tuple[int, int]:
    """Put a commit marker into a transaction in the middle of stock/0; returns its offset and that of the other one."""
    data = [each for each in run.log("stock", 0) if each["control"] is None and each["first"] > 200]
    return _halved(run, "stock", next(each for each in data if _divisible(run, each)))


@mutant(ABORTS)
def marker_again_in_the_middle_of_the_run(run: RunData) -> Expected:
    """Harmless: a coordinator sent a marker once more, before the next transaction of the producer began."""
    marker = markers(run, "stock", 0, _COMMITTER)[12]
    like = [each for each in at(run, "stock", 0, marker) if each["control"]]
    run._shift("stock", 0, marker + 1, 1)
    for each in like:
        each["last"] = marker
    run.batches += [{**each, "first": marker + 1, "last": marker + 1} for each in like]
    return {}


@mutant(ABORTS)
def batch_behind_its_marker(run: RunData) -> Expected:
    """A batch came in behind the marker of its transaction, and no coordinator knows of it (KAFKA-14561)."""
    batch, _ = last_of_partition(run, "stock", 0)
    end = run.pinned("stock", 0)
    late = {"first": end["end"], "last": end["end"], "records": 1, "marker": None, "fate": "open"}
    for each in at(run, "stock", 0, batch["first"]):
        sequence = each["sequence"] + each["last"] - each["first"] + 1
        run.batches.append({**each, **late, "sequence": sequence})
    end["high_watermark"] = end["end"] + 1
    return {"hung-transaction": {("stock", 0, end["end"])}}


@mutant(ABORTS)
def abort_marker_that_nobody_decided(run: RunData) -> Expected:
    """An abort marker stands in the middle of a producer's last transaction, whose own marker commits the rest."""
    for partition in range(3):
        batch, _ = last_of_partition(run, "stock", partition)
        if _divisible(run, batch):
            return {"torn-transaction": _half_aborted(run, "stock", batch)}
    raise LookupError("no last transaction with a batch of four records")


@mutant(ABORTS)
def abort_marker_before_an_aborted_transaction(run: RunData) -> Expected:
    """An abort marker that nobody decided stands in the middle of a transaction; a later transaction of the same
    producer was aborted as decided, and those between were committed."""
    aborts = [each["first"] for each in run.log("stock", 0) if each["control"] == "abort"]
    batch = next(
        each
        for each in sorted(run.log("stock", 0), key=lambda each: int(each["first"]))
        if each["control"] is None and each["last"] < min(aborts) and _divisible(run, each)
    )
    return {"torn-transaction": _half_aborted(run, "stock", batch)}


@mutant(ABORTS)
def abort_marker_for_a_decision_to_commit(run: RunData) -> Expected:
    """In the middle of the run, the marker of one partition aborts what its coordinator decided to commit."""
    batch = next(each for each in run.log("stock", 2) if each["producer_epoch"] == _EPOCH and _divisible(run, each))
    for each in at(run, "stock", 2, batch["marker"]):
        each["control"] = "abort"
    run.hide("stock", 2, batch["first"], batch["last"])
    return {"torn-transaction": {("stock", 2, batch["first"]), ("stock", 2, batch["marker"])}}


@mutant(ABORTS)
def marker_missing_in_one_partition(run: RunData) -> Expected:
    """In the middle of the run, a transaction has no marker in one partition; that of the next transaction ends what
    both of them wrote there."""
    _without_marker(run)
    return {"hung-transaction": {("stock", 2, markers(run, "stock", 2, _KILLED)[-1] + 1)}}


@mutant(ABORTS)
def marker_missing_with_an_epoch_for_each_transaction(run: RunData) -> Expected:
    """The same with transaction version 2: the epochs say which transaction has no marker."""
    version_2(run)
    first = _without_marker(run)
    return {
        "hung-transaction": {("stock", 2, markers(run, "stock", 2, _KILLED)[-1] + 1)},
        "zombie-write": {("stock", 2, first)},
    }


@mutant(ABORTS)
def producer_id_rotated(run: RunData) -> Expected:
    """Harmless: the coordinator gave a producer another id, with which it began at epoch 0 again."""
    for each in (*run.batches, *run.commits, *run.states):
        if (each["producer_id"], each["producer_epoch"]) == (_KILLED, _EPOCH):
            each |= {"producer_id": 5_000, "producer_epoch": 0}
    return {}


@mutant(ABORTS)
def coordinator_epoch_below_that_for_another_producer(run: RunData) -> Expected:
    """Two producers have one coordinator. A marker of one is of an older coordinator epoch than a marker of the other
    that stands before it."""
    for each in run.batches:
        each["coordinator_epoch"] = None if each["control"] is None else 0
    [log, *_] = sorted({each["log"] for each in run.states})
    for each in run.states:
        each |= {"offset": each["offset"] + (0 if each["log"] == log else 5_000), "log": log}
    last = markers(run, "stock", 2, _COMMITTER)[-1]
    old, *later = [each for each in markers(run, "stock", 2, _KILLED) if each > last]
    for offset in (last, *later):
        for each in at(run, "stock", 2, offset):
            each["coordinator_epoch"] = 7
    return {"zombie-write": {("stock", 2, old)}}


def _divisible(run: RunData, batch: Row) -> bool:
    """Whether a batch is all of its span, with four records or more and its marker right behind it."""
    whole = len(span_of(run, "stock", batch["partition"], batch)) == 1
    sized = batch["last"] - batch["first"] >= 3
    return whole and sized and batch["fate"] == "visible" and bool(batch["marker"] == batch["last"] + 1)


def _half_aborted(run: RunData, topic: str, batch: Row) -> set[Place]:
    """Put an abort marker into the middle of a batch; returns the places of what is torn: what it aborted, and it."""
    place, first = batch["partition"], batch["first"]
    middle, _ = _halved(run, topic, batch, "abort")
    run.hide(topic, place, first, middle - 1)
    return {(topic, place, first), (topic, place, middle)}


def _halved(run: RunData, topic: str, batch: Row, kind: str = "commit") -> tuple[int, int]:
    """Put a marker into the middle of a batch; returns its offset, and that of the marker behind the batch."""
    place, first, marker = batch["partition"], batch["first"], batch["marker"] + 1
    middle = (first + batch["last"]) // 2
    run._shift(topic, place, middle + 1, 1)
    for each in at(run, topic, place, first):
        [ending] = [one for one in at(run, topic, place, marker) if one["broker"] == each["broker"]]
        half = middle - each["first"] + 1
        rest = {**each, "first": middle + 2, "records": each["last"] - middle - 1}
        rest["sequence"] = each["sequence"] + half
        run.batches += [rest, {**ending, "first": middle + 1, "last": middle + 1, "control": kind}]
        each |= {"last": middle, "records": half, "marker": middle + 1}
    return middle + 1, marker


def _without_marker(run: RunData) -> int:
    """Take a marker in the middle of the run out of stock/2; returns the first offset of the span that has grown."""
    there = markers(run, "stock", 2, _KILLED)
    gone, following = there[len(there) // 2 : len(there) // 2 + 2]
    first: int = min(each["first"] for each in run.log("stock", 2) if each["marker"] == gone)
    run.batches = [each for each in run.batches if each not in at(run, "stock", 2, gone)]
    for each in run.log("stock", 2):
        each["marker"] = following if each["marker"] == gone else each["marker"]
    run._shift("stock", 2, gone + 1, -1)
    return first
