"""Mutants of sequence numbers: of the batches that a producer id wrote into a partition with one epoch (KIP-98)."""

from tests.mutants.catalogue import (
    ABORTS,
    ZOMBIE,
    Expected,
    each_of,
    input_of,
    mutant,
    pick,
    place_of,
)
from tests.mutants.of_coordinators import at, last_of_partition, renumber
from tests.mutants.of_zombies import older_epoch_committed
from tests.packing import Place
from tests.rundata import Row, RunData


@mutant(ZOMBIE, alone=True)
def sequence_with_a_gap(run: RunData) -> Expected:
    """The sequence numbers of a producer leave some out, although every input has its output."""
    return {"lost": {_sequences(run, by=3)}}


@mutant(ZOMBIE, alone=True)
def sequence_that_repeats(run: RunData) -> Expected:
    """The sequence numbers of a producer go back by one batch, although no input has two outputs."""
    return {"duplicate": {_sequences(run)}}


@mutant(ZOMBIE, alone=True)
def sequence_that_overlaps(run: RunData) -> Expected:
    """A batch begins with the sequence number with which the one before it ended, although no input has two outputs."""
    return {"duplicate": {_sequences(run, by=-1)}}


def _sequences(run: RunData, *, by: int | None = None) -> tuple[str, int, int]:
    """Move the sequence numbers of the last batch of a producer's epoch; None: to those of the batch before it."""
    for partition in range(3):
        batch, _ = last_of_partition(run, "output", partition)
        mine = [each for each in run.log("output", partition) if each["broker"] == batch["broker"]]
        keys = ("control", "producer_id", "producer_epoch")
        alike = [each for each in mine if all(each[key] == batch[key] for key in keys)]
        if len(alike) > 1:
            *_, before, last = sorted(alike, key=lambda each: int(each["first"]))
            for each in at(run, "output", partition, last["first"]):
                each["sequence"] = before["sequence"] if by is None else each["sequence"] + by
            return "output", partition, last["first"]
    raise LookupError("no producer has two batches of its last epoch in a partition")


@mutant(ZOMBIE)
def sequence_with_a_gap_beside_an_unread_output(run: RunData) -> Expected:
    """The sequence numbers of a producer leave some out in one partition, and the reader missed an output of another:
    that says nothing of the first."""
    run.outputs.remove(pick(run, partition=1))
    return {"lost": {_gap(run, 0)}}


@mutant(ABORTS)
def sequence_with_a_gap_beside_a_duplicate(run: RunData) -> Expected:
    """The sequence numbers of a producer leave some out in one partition, and an input has two outputs in another."""
    row = next(row for row in each_of(run, "stock", 1)[40:] if row["worker"] == 0)
    again = run.insert_output(row, row["offset"], counted=True)
    return {"lost": {_gap(run, 2, "stock")}, "duplicate": {place_of(row), place_of(again)}}


def _gap(run: RunData, partition: int, topic: str = "output") -> Place:
    """Let the sequence numbers of the last batch of a partition's producer leave three out."""
    there = [each for each in run.log(topic, partition) if each["fate"] == "visible"]
    last = max(
        (
            batch
            for batch in there
            if len({each["first"] for each in there if _lane_of(each) == _lane_of(batch)}) > 1
            and batch["first"] == max(each["first"] for each in there if _lane_of(each) == _lane_of(batch))
        ),
        key=lambda each: int(each["first"]),
    )
    for each in at(run, topic, partition, last["first"]):
        each["sequence"] += 3
    return topic, partition, last["first"]


def _lane_of(batch: Row) -> tuple[int, int]:
    return batch["producer_id"], batch["producer_epoch"]


@mutant(ZOMBIE, unknown="output/0: 595 visible in the log, the reader saw 594 records")
def sequence_with_a_gap_in_an_incomplete_partition(run: RunData) -> Expected:
    """Nothing is asserted: the reader missed an output of the partition in which a producer's sequence numbers leave
    some out."""
    run.outputs.remove(pick(run))
    _gap(run, 0)
    return {}


@mutant(ABORTS, alone=True, unknown="stock/0: 605 offsets, the log's batches account for")
def aborted_batch_not_in_the_log(run: RunData) -> Expected:
    """Nothing is asserted: an aborted batch is in no replica's log, and the sequence numbers leave its records out."""
    batch = next(each for each in run.log("stock", 0) if each["fate"] == "aborted")
    run.batches = [each for each in run.batches if each not in at(run, "stock", 0, batch["first"])]
    return {}


@mutant(ZOMBIE, pipeline="tests/mutants/apart.py:ANYWHERE", alone=True)
def sequence_with_a_gap_where_a_lost_output_may_have_been(run: RunData) -> Expected:
    """An output is lost that may have been in any partition, and a producer's sequence numbers leave some out."""
    row = pick(run, partition=1)
    run.remove_output(row)
    _gap(run, 0)
    return {"lost": {input_of(row)}}


@mutant(ZOMBIE)
def sequence_with_a_gap_where_an_output_is_lost(run: RunData) -> Expected:
    """A record that a producer sent is not in its batch, and the sequence numbers after it count it: one cause."""
    row = pick(run)
    batch = run.batch_of(row)
    lane = {each["first"] for each in run.log("output", 0) if _lane_of(each) == _lane_of(batch)}
    run.remove_output(row)
    for each in run.log("output", 0):
        if _lane_of(each) == _lane_of(batch) and each["control"] is None and each["first"] + 1 in lane:
            each["sequence"] += each["first"] >= row["offset"]
    return {"lost": {input_of(row)}}


@mutant(ZOMBIE, pipeline="produce")
def batches_of_a_plain_producer(run: RunData) -> Expected:
    """Harmless: a pipeline that claims no transactions wrote a partition with a producer without an id."""
    for each in run.log("output", 0):
        if each["fate"] == "visible":
            each |= {"producer_id": -1, "producer_epoch": -1, "transactional": False, "marker": None}
    renumber(run.log("output", 0))
    for each in run.log("output", 0):
        if each["producer_id"] < 0:
            each["sequence"] = -1
    return {}


@mutant(ZOMBIE)
def older_epoch_committed_out_of_sequence(run: RunData) -> Expected:
    """A batch of an older epoch was committed, whose sequence number does not follow in that epoch: one cause."""
    expected = older_epoch_committed(run)
    [(_, partition, first)] = expected["zombie-write"]
    for each in at(run, "output", partition, first):
        each["sequence"] += 5
    return expected
