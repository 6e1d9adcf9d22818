"""Mutants of logs and readers: inputs that changed, replicas that differ, readers that disagree or miss something."""

from tests.mutants.catalogue import DELETES, TWICE, ZOMBIE, Expected, lose, mutant, pick, place_of
from tests.packing import Place
from tests.rundata import Row, RunData


@mutant(ZOMBIE)
def input_changed(run: RunData) -> Expected:
    """The input's log holds another value than was acknowledged; the pipeline copied what was acknowledged."""
    row = run.inputs[50]
    row["digest"] ^= 1
    return {"input-lost": {_at(row)}}


@mutant(ZOMBIE)
def input_changed_and_copied(run: RunData) -> Expected:
    """The input's log holds another value than was acknowledged, and the pipeline copied that."""
    row = run.inputs[50]
    row["digest"] ^= 1
    output = run.output(row["number"])
    output["digest"] = run.seen(output)["digest"] = row["digest"]
    return {"input-lost": {_at(row)}}


@mutant(ZOMBIE)
def input_tail_lost(run: RunData) -> Expected:
    """The last input of a partition is gone; its output is there, and the position lies beyond the end."""
    end = run.pinned("input", 2)
    last = next(row for row in run.inputs if (row["partition"], row["offset"]) == (2, end["end"] - 1))
    _drop_input(run, last)
    return {"input-lost": {_at(last)}}


@mutant(ZOMBIE)
def input_tail_lost_before_it_was_read(run: RunData) -> Expected:
    """The last input of a partition is gone, and nothing came of it: the brokers lost it, not the pipeline."""
    expected = input_tail_lost(run)
    [(_, partition, offset)] = expected["input-lost"]
    run.remove_output(run.made_of(partition, offset))
    return expected


@mutant(ZOMBIE)
def input_tail_lost_beside_another_loss(run: RunData) -> Expected:
    """The same, and an earlier input of that partition, which the log has, was never sent: two causes."""
    expected = input_tail_lost_before_it_was_read(run)
    row = pick(run, partition=2)
    return {**expected, **lose(run, row)}


@mutant(ZOMBIE)
def input_tail_lost_beside_an_unread_output(run: RunData) -> Expected:
    """The last input of a partition is gone, and the reader missed an output: that says nothing of the input's log."""
    expected = input_tail_lost(run)
    run.outputs.remove(pick(run, partition=2))
    return expected


@mutant(ZOMBIE, unknown="1 inputs have no output, but a partition is incomplete", alone=True)
def input_unread_and_without_output(run: RunData) -> Expected:
    """Nothing is asserted: the reader missed an input that the log shows, and its output is not there."""
    row = pick(run)
    run.inputs.remove(next(each for each in run.inputs if each["number"] == row["number"]))
    run.remove_output(row)
    return {}


@mutant(ZOMBIE, unknown="input/0: 595 visible in the log, the reader saw 594 records")
def input_unread(run: RunData) -> Expected:
    """Nothing is asserted: the reader missed an input that the log shows, and its output is there."""
    run.inputs.remove(run.inputs[50])
    return {}


@mutant(ZOMBIE)
def replica_has_another_batch(run: RunData) -> Expected:
    """One replica holds a batch with another checksum."""
    batch = next(each for each in run.log("output", 1) if each["broker"] == "broker3" and each["fate"] == "visible")
    batch["crc"] ^= 1
    return {"replica-divergence": {("output", 1, batch["first"])}}


@mutant(ZOMBIE)
def replica_lacks_the_end(run: RunData) -> Expected:
    """One replica, not the leader, lacks the last batch of a partition."""
    leader = run.pinned("output", 0)["leader"]
    mine = [each for each in run.log("output", 0) if each["broker"] != leader]
    last = max(mine, key=lambda each: int(each["first"]))
    run.batches.remove(last)
    return {"replica-divergence": {("output", 0, last["first"])}}


@mutant(ZOMBIE)
def replica_above_the_high_watermark(run: RunData) -> Expected:
    """Harmless: a replica holds one batch more, above the high watermark."""
    _one_batch_more(run, 0, run.log("output", 0)[0]["broker"])
    return {}


@mutant(DELETES)
def replica_below_the_log_start(run: RunData) -> Expected:
    """Harmless: one replica still holds batches below the log start, another has removed them."""
    start = run.pinned("input", 0)["start"]
    old = {**next(iter(run.log("input", 0))), "first": 0, "last": 0, "crc": 1}
    assert start > 0
    run.batches.append(old)
    return {}


@mutant(DELETES)
def replicas_differ_above_and_below_the_log_start(run: RunData) -> Expected:
    """One replica has another batch above the log start, and another one still holds what was removed below it."""
    start = run.pinned("input", 0)["start"]
    batch = next(each for each in run.log("input", 0) if each["broker"] == "broker3" and each["first"] >= start)
    old = {**next(each for each in run.log("input", 0) if each["broker"] == "broker2"), "first": 0, "last": 0, "crc": 1}
    batch["crc"] ^= 1
    run.batches.append(old)
    return {"replica-divergence": {("input", 0, batch["first"])}}


@mutant(ZOMBIE)
def replicas_differ_and_one_is_ahead(run: RunData) -> Expected:
    """One replica holds a batch with another checksum, and another one has more above the high watermark."""
    expected = replica_has_another_batch(run)
    _one_batch_more(run, 1, "broker1")
    return expected


def still_open(run: RunData, topic: str, partition: int, *, known_as: str | None = None) -> Place:
    """Let the brokers say that a transaction of a partition is open; `known_as` is the coordinator's name for it."""
    told = {"producer_id": 1, "producer_epoch": 0, "start_offset": 30, "known_as": known_as}
    run.open_transactions.append({"topic": run.prefix + topic, "partition": partition, **told})
    return topic, partition, 30


@mutant(ZOMBIE)
def hung(run: RunData) -> Expected:
    """A partition has an open transaction that no coordinator knows."""
    return {"hung-transaction": {still_open(run, "output", 1)}}


@mutant(ZOMBIE, unknown="is still open in op-pack-output/1")
def open_and_known(run: RunData) -> Expected:
    """Nothing is asserted: a transaction is still open, and its coordinator knows it."""
    still_open(run, "output", 1, known_as="worker-0")
    return {}


@mutant(ZOMBIE)
def observer_saw_another_value(run: RunData) -> Expected:
    """The live observer saw another value at an offset than stands there at rest."""
    row = pick(run)
    run.seen(row)["digest"] ^= 1
    return {"inconsistent-read": {place_of(row)}}


@mutant(ZOMBIE)
def observer_saw_another_value_beside_an_unread_one(run: RunData) -> Expected:
    """The same, and the reader at rest missed another record: what both saw differs all the same."""
    expected = observer_saw_another_value(run)
    run.outputs.remove(pick(run, nth=90))
    return expected


@mutant(TWICE, "ledger", unknown="vacuous: the live observer saw nothing of op-pack-output", alone=True)
def nobody_watched(run: RunData) -> Expected:
    """Nothing is asserted: there was no live observer, and nobody read the input."""
    run.observed = []
    return {}


@mutant(ZOMBIE)
def seen_committed_and_gone(run: RunData) -> Expected:
    """The live observer saw a record committed; at rest another one stands there, and its input has no output."""
    row, end = pick(run), run.pinned("output", 0)["end"]
    run.observed.append({**run.seen(row), "offset": end})
    run.observed.remove(run.seen(row))
    run.remove_output(row)
    return {"inconsistent-read": {("output", 0, end - 1)}}


@mutant(ZOMBIE)
def observer_late(run: RunData) -> Expected:
    """Harmless: the live observer did not come to the end."""
    del run.observed[-100:]
    return {}


@mutant(ZOMBIE)
def observer_started_again(run: RunData) -> Expected:
    """Harmless: the live observer saw some records twice, the same ones."""
    run.observed += run.observed[:100]
    return {}


@mutant(DELETES, unknown="output/0: it starts at 40: somebody deleted records that no fault deleted")
def observed_before_it_was_deleted(run: RunData) -> Expected:
    """Nothing is asserted: the live observer saw outputs that somebody deleted afterwards, by moving the log start."""
    start = run.pinned("output", 0)
    start["start"] = 40
    run.outputs = [row for row in run.outputs if (row["partition"], row["offset"] < 40) != (0, True)]
    return {}


@mutant(ZOMBIE, unknown="output/0: 595 visible in the log, the reader saw 594 records")
def output_unread(run: RunData) -> Expected:
    """Nothing is asserted: the reader missed a record that the log shows as visible."""
    row = pick(run)
    run.outputs.remove(row)
    return {}


@mutant(ZOMBIE, unknown="output/0: 665 offsets, the log's batches account for 648")
def batch_not_in_the_log(run: RunData) -> Expected:
    """Nothing is asserted by absence: a batch with one record is in no replica's log, and its record is unread."""
    row = pick(run)
    run.outputs.remove(row)
    run.batches = [
        each
        for each in run.batches
        if each not in [batch for batch in run.log("output", 0) if batch["first"] <= row["offset"] <= batch["last"]]
    ]
    return {}


@mutant(ZOMBIE, unknown="output/1: the LSO 481 is below the high watermark 483")
def above_the_last_stable_offset(run: RunData) -> Expected:
    """Nothing is asserted by absence: the last record stands above the LSO, so no reader sees it."""
    end = run.pinned("output", 1)
    rows = sorted((row for row in run.outputs if row["partition"] == 1), key=lambda row: int(row["offset"]))
    run.outputs.remove(rows[-1])
    run.observed.remove(run.seen(rows[-1]))
    end["end"] = rows[-1]["offset"]
    return {}


@mutant(ZOMBIE, unknown="1 inputs at or above the committed offset have no output")
def above_the_position(run: RunData) -> Expected:
    """Nothing is asserted: the last input has no output, and the position says that it was not consumed."""
    last = max((row for row in run.outputs if row["partition"] == 1), key=lambda row: int(row["offset"]))
    run.remove_output(last)
    commit = max((each for each in run.commits if each["partition"] == 1), key=lambda each: int(each["offset"]))
    commit["position"] -= 1
    run.positions[1] -= 1
    return {}


@mutant(ZOMBIE)
def a_partition_without_records(run: RunData) -> Expected:
    """Harmless: nothing was ever written to a partition."""
    run.partitions.append({**run.pinned("output", 0), "partition": 3, "start": 0, "end": 0, "high_watermark": 0})
    return {}


def _at(row: Row) -> tuple[str, int, int]:
    return "input", row["partition"], row["offset"]


def _one_batch_more(run: RunData, partition: int, broker: str) -> None:
    """Behind the last batch of an output partition, on one replica."""
    last = max(run.log("output", partition), key=lambda each: int(each["first"]))
    run.batches.append({**last, "broker": broker, "first": last["last"] + 1, "last": last["last"] + 1})


def _drop_input(run: RunData, row: Row) -> None:
    """Take the last record of an input partition out of the log."""
    run.inputs.remove(row)
    for batch in run.log("input", row["partition"]):
        if batch["last"] == row["offset"]:
            batch["last"] -= 1
            batch["records"] -= 1
    run.batches = [batch for batch in run.batches if batch["records"]]
    end = run.pinned("input", row["partition"])
    end["end"] = end["high_watermark"] = row["offset"]
