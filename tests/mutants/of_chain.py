"""Mutants of a chain: what happens in the topic between two services."""

from tests.mutants.catalogue import (
    CHAIN,
    Expected,
    input_of,
    last_still_open,
    lose,
    mutant,
    pick,
    place_of,
    positions_of,
    turns,
)
from tests.mutants.of_resets import reset
from tests.packing import Place
from tests.rundata import Row, RunData


@mutant(CHAIN)
def made_of_an_aborted_record(run: RunData) -> Expected:
    """The first service's transaction was aborted, and the second one has passed on what it read of it."""
    row = pick(run)
    made: set[tuple[int, int]] = set()
    invoke = _manifest_between(run, row)
    run.outcome_of(invoke)["type"] = "fail"
    for place, (_, first, last) in invoke["outputs"].items():
        partition = int(place.rpartition("/")[2])
        run.hide("middle", partition, first, last)
        made |= {(partition, offset) for offset in range(first, last + 1)}
    return {
        "aborted-read": {
            place_of(each)
            for each in run.outputs
            if (each["intermediate_partition"], each["intermediate_offset"]) in made
        }
    }


@mutant(CHAIN)
def lost_on_the_way(run: RunData) -> Expected:
    """An input reached the topic between and not the end."""
    row = pick(run)
    return lose(run, row)


@mutant(CHAIN)
def made_twice_of_one(run: RunData) -> Expected:
    """The second service passed on one record twice."""
    row = pick(run, partition=1)
    again = run.insert_output(row, row["offset"], counted=True)
    return {"duplicate": {place_of(row), place_of(again)}}


@mutant(CHAIN)
def half_passed_on(run: RunData) -> Expected:
    """The second service's transaction was committed in one partition and aborted in the other, and not done again."""
    partition, (_, first, last) = _of_two_partitions(run, "output")
    run.hide("output", partition, first, last)
    return {"torn-transaction": {("output", partition, first)}}


@mutant(CHAIN)
def half_passed_on_beside_losses(run: RunData) -> Expected:
    """The same, and the inputs right before and behind those were never passed on: offsets of the topic between are not
    those of the input."""
    partition, (_, first, last) = _of_two_partitions(run, "output")
    own = {
        row["source_offset"] for row in run.outputs if row["partition"] == partition and first <= row["offset"] <= last
    }
    run.hide("output", partition, first, last)
    rows = [run.made_of(partition, offset) for offset in (min(own) - 2, max(own) + 2)]
    for row in rows:
        run.remove_output(row)
    [(_, shifted, _)] = [
        span
        for span in run.parts("output", partition)
        if span[2] - span[1] == last - first and span[1] <= first <= span[2]
    ]
    return {"torn-transaction": {("output", partition, shifted)}, "lost": {input_of(row) for row in rows}}


@mutant(CHAIN)
def half_of_the_first_service(run: RunData) -> Expected:
    """The first service's transaction was committed in one partition and aborted in the other, and not done again;
    nothing came of that."""
    partition, (_, first, last) = _of_two_partitions(run, "middle")
    run.hide("middle", partition, first, last)
    for row in [
        row
        for row in run.outputs
        if row["intermediate_partition"] == partition and first <= row["intermediate_offset"] <= last
    ]:
        run.remove_output(row)
    return {"torn-transaction": {("middle", partition, first)}}


@mutant(CHAIN)
def doubled_when_the_second_service_went_back(run: RunData) -> Expected:
    """Inputs were deleted behind the position and one was passed on twice; it was the second service that went back, in
    its own topic."""
    return {"duplicate": _went_back(run, worker=1)}


@mutant(CHAIN)
def doubled_when_the_first_service_went_back(run: RunData) -> Expected:
    """The same, and it was the first service, in the input."""
    return {"reset-reprocess": _went_back(run, worker=0)}


def _went_back(run: RunData, worker: int) -> set[Place]:
    row = pick(run)
    offset = row["source_offset"]
    _delete(run, "input", start=0, position=offset + 1)
    reset(run, offset + 1, 0, worker)
    again = run.insert_output(row, row["offset"], counted=True)
    return {place_of(row), place_of(again)}


@mutant(CHAIN)
def position_of_a_given_up_first_service(run: RunData) -> Expected:
    """The first service gave a transaction up, and all of it was committed; the second one has passed it on."""
    return _given_up(run, turns(run, 0)[3])


def _given_up(run: RunData, row: Row) -> Expected:
    """Let a transaction of the first service, by a position of it, have been given up and committed all the same."""
    run.outcome(row)["type"] = "fail"
    run.events.remove(run.invoke(row))
    return {"offset-divergence": {("input", each["partition"], each["position"]) for each in positions_of(run, row)}}


@mutant(CHAIN)
def position_of_a_given_up_first_service_beside_losses(run: RunData) -> Expected:
    """The same, and inputs are lost whose records in the topic between have the offsets that the transaction's inputs
    have in theirs; that says nothing of its position."""
    for row in turns(run, 0)[5:]:
        first, after = run.outcome(row)["sources"]["0"]
        gone = [
            each
            for each in run.outputs
            if each["intermediate_partition"] == 0
            and first <= each["intermediate_offset"] < after
            and each["source_offset"] < first
        ]
        if gone:
            break
    for each in gone:
        run.remove_output(each)
    return {**_given_up(run, row), "lost": set(map(input_of, gone))}


@mutant(CHAIN, unknown="committed offsets are in transactions that are open")
def first_position_still_open(run: RunData) -> Expected:
    """Nothing is asserted: the first service's last position waits for its marker; the second one has passed on what
    was committed with it."""
    last_still_open(run, 0)
    return {}


@mutant(CHAIN, unknown="middle/0: it starts at 11: somebody deleted records")
def deleted_between_further_than_the_fault(run: RunData) -> Expected:
    """Nothing is asserted: the topic between starts behind the low watermark that a fault's delete gave back."""
    _delete(run, "middle")
    run.pinned("middle", 0)["start"] += 1
    return {}


@mutant(CHAIN)
def deleted_between(run: RunData) -> Expected:
    """Harmless: a fault deleted records of the topic between, behind the second service's position."""
    _delete(run, "middle")
    return {}


@mutant(CHAIN)
def deleted_between_and_from_disk(run: RunData) -> Expected:
    """Harmless: the same, and the brokers have removed what lay there."""
    first = min((each for each in run.log("middle", 0) if each["control"]), key=lambda each: int(each["first"]))
    start = first["last"] + 1
    _delete(run, "middle", start=start, position=start)
    gone = [each for each in run.log("middle", 0) if each["last"] < start]
    run.batches = [each for each in run.batches if each not in gone]
    return {}


@mutant(CHAIN, unknown="output/0: it starts at 10: somebody deleted records")
def deleted_at_the_end(run: RunData) -> Expected:
    """Nothing is asserted by absence: a fault deleted outputs."""
    _delete(run, "output")
    run.outputs = [row for row in run.outputs if (row["topic"], row["partition"]) != ("output", 0) or row["offset"] > 9]
    return {}


@mutant(CHAIN, unknown="middle/1: it starts at 10: somebody deleted records")
def deleted_between_by_nobody(run: RunData) -> Expected:
    """Nothing is asserted: the topic between does not start at its first record, and no fault deleted there."""
    _delete(run, "middle")
    run.pinned("middle", 1)["start"] = 10
    return {}


@mutant(CHAIN)
def lost_where_others_were_deleted(run: RunData) -> Expected:
    """Records of the topic between were deleted past the position, and an input of those offsets is lost: offsets of
    one topic say nothing of the other's."""
    _delete(run, "middle", position=0)
    row = run.made_of(0, 5)
    return lose(run, row)


@mutant(CHAIN)
def marker_again_where_others_were_deleted(run: RunData) -> Expected:
    """Harmless: the first transactions between were deleted, and the last marker was sent once more. That does not move
    the others to the decisions before their own."""
    ends = [each for each in run.batches if (each["topic"], each["partition"]) == (f"{run.prefix}middle", 0)]
    markers = sorted({each["first"] for each in ends if each["control"] is not None})
    [aborted] = {each["first"] for each in ends if each["control"] == "abort"}  # after it all epochs are alike
    start = markers[markers.index(aborted) + 1] + 1
    _delete(run, "middle", start=start, position=start)
    run.batches = [each for each in run.batches if each not in ends or each["first"] >= start]
    end = run.pinned("middle", 0)["end"]
    run.batches += [{**each, "first": end, "last": end} for each in ends if each["first"] == markers[-1]]
    run.pinned("middle", 0).update(end=end + 1, high_watermark=end + 1)
    return {}


def _manifest_between(run: RunData, row: Row) -> Row:
    """The manifest of the first service's transaction that wrote the record which this output was made of."""
    place = f"{run.prefix}middle/{row['intermediate_partition']}"
    [manifest] = [
        event
        for event in run.events
        if event["event"] == "invoke"
        and place in event["outputs"]
        and event["outputs"][place][1] <= row["intermediate_offset"] <= event["outputs"][place][2]
    ]
    return manifest


def _of_two_partitions(run: RunData, topic: str) -> tuple[int, list[int]]:
    """A transaction in the middle of the run that wrote to two partitions of a topic; one of these, and what it wrote
    there: count, first, last."""
    for event in (e for e in run.events if e["event"] == "invoke"):
        places = [place for place in event["outputs"] if f"-{topic}/" in place]
        for place in places if len(places) > 1 else []:
            partition, span = int(place.rpartition("/")[2]), event["outputs"][place]
            if span[1] > 40 and span[2] + 20 < run.pinned(topic, partition)["end"]:
                return partition, list(span)
    raise LookupError(f"no transaction wrote to two partitions of {topic}")


def _delete(run: RunData, topic: str, *, start: int = 10, position: int = 20) -> None:
    run.pinned(topic, 0)["start"] = start
    mark = {"partition": 0, "position": position, "low_watermark": start}
    run.events.insert(
        -1,
        {
            "at": 50.0,
            "source": "nemesis",
            "event": "records-deleted",
            "fault": "0-delete-records",
            "to": "behind",
            "topic": topic,
            "partitions": [mark],
        },
    )
