"""Mutants of what the ledger knows: inputs acknowledged without an offset, inputs stored twice, log starts."""

from tests.mutants.catalogue import (
    DELETES,
    TWICE,
    ZOMBIE,
    Expected,
    change,
    each_of,
    forget,
    insert_behind,
    lose,
    move_position,
    mutant,
    pick,
    place_of,
)
from tests.mutants.of_logs import input_tail_lost, input_tail_lost_before_it_was_read
from tests.rundata import Row, RunData


@mutant(ZOMBIE)
def offset_not_told(run: RunData) -> Expected:
    """Harmless: an input was acknowledged without its offset, and the log has it."""
    forget(run, pick(run)["number"], acknowledged=True)
    return {}


@mutant(ZOMBIE, alone=True)
def offset_not_told_and_without_output(run: RunData) -> Expected:
    """An input was acknowledged without its offset, the log has it, and it has no output."""
    row = pick(run)
    forget(run, row["number"], acknowledged=True)
    return lose(run, row)


@mutant(ZOMBIE)
def offset_not_told_and_gone(run: RunData) -> Expected:
    """An input was acknowledged without its offset, and is nowhere in the log; its output is there."""
    return _gone(run, input_tail_lost(run))


@mutant(ZOMBIE)
def offset_not_told_and_gone_before_it_was_read(run: RunData) -> Expected:
    """The same, and nothing came of it: the brokers lost it, not the pipeline."""
    return _gone(run, input_tail_lost_before_it_was_read(run))


@mutant(ZOMBIE)
def offset_not_told_and_changed(run: RunData) -> Expected:
    """An input was acknowledged without its offset, and the log has it with another value."""
    row = run.inputs[50]
    row["digest"] ^= 1
    forget(run, row["number"], acknowledged=True)
    return {"input-lost": {("input", row["partition"], run.pinned("input", row["partition"])["end"])}}


@mutant(ZOMBIE, unknown="input/0: 595 visible in the log, the reader saw 594 records")
def offset_not_told_and_unread(run: RunData) -> Expected:
    """Nothing is asserted: an input was acknowledged without its offset, and the reader missed one that is there."""
    row = run.inputs[50]
    run.inputs.remove(row)
    forget(run, row["number"], acknowledged=True)
    return {}


@mutant(DELETES)
def offset_not_told_and_deleted(run: RunData) -> Expected:
    """Harmless: an input was acknowledged without its offset; it has its output, and a fault deleted it."""
    forget(run, _deleted(run)["number"], acknowledged=True)
    return {}


@mutant(DELETES, unknown="1 inputs have no output, but a partition is incomplete or the input", alone=True)
def offset_not_told_deleted_and_without_output(run: RunData) -> Expected:
    """Nothing is asserted: an input was acknowledged without its offset, is not in the log any more, and has no output.
    Nobody knows whether the position had passed it."""
    row = _deleted(run)
    forget(run, row["number"], acknowledged=True)
    run.remove_output(row)
    return {}


@mutant(DELETES)
def info_deleted_and_without_output(run: RunData) -> Expected:
    """Harmless: the same, and it was never acknowledged."""
    row = _deleted(run)
    forget(run, row["number"])
    run.remove_output(row)
    return {}


@mutant(ZOMBIE, "ledger")
def ledger_mode_offset_not_told(run: RunData) -> Expected:
    """Ledger mode, harmless: an input was acknowledged without its offset, and has its output."""
    forget(run, pick(run)["number"], acknowledged=True)
    return {}


@mutant(TWICE, "ledger", unknown="1 inputs have no output, but a partition is incomplete or the input")
def ledger_mode_offset_not_told_and_without_output(run: RunData) -> Expected:
    """Ledger mode, nothing is asserted: an input was acknowledged without its offset, and has no output."""
    row = pick(run)
    forget(run, row["number"], acknowledged=True)
    _remove_outputs(run, row["number"])
    return {}


@mutant(TWICE, "ledger", unknown="1 inputs were never acknowledged and are not known to be in the log")
def ledger_mode_info_and_one_of_its_outputs(run: RunData) -> Expected:
    """Ledger mode, nothing is asserted: an input that was never acknowledged has one of its two outputs."""
    row = pick(run)
    forget(run, row["number"])
    run.remove_output(row)
    return {}


@mutant(TWICE, "ledger")
def ledger_mode_info_without_outputs(run: RunData) -> Expected:
    """Ledger mode, harmless: an input that was never acknowledged has none of its outputs."""
    row = pick(run)
    forget(run, row["number"])
    _remove_outputs(run, row["number"])
    return {}


@mutant(ZOMBIE, unknown="1 records of op-pack-input are not in the ledger")
def input_stored_twice(run: RunData) -> Expected:
    """Nothing is asserted: an input stands in the log a second time, which the ledger does not know; both came out."""
    stored_again(run)
    return {}


def stored_again(run: RunData) -> Row:
    """Put the last input of a partition into the log once more, with its output; returns it as the log has it."""
    row = max(each_of(run, "output", 2), key=lambda each: int(each["source_offset"]))
    end = run.pinned("input", 2)
    again = {"partition": 2, "offset": end["end"], "number": row["number"], "digest": row["digest"]}
    run.inputs.append(again)
    for batch in run.log("input", 2):
        if batch["last"] == end["end"] - 1:
            batch["last"], batch["records"] = batch["last"] + 1, batch["records"] + 1
    end["end"] = end["high_watermark"] = end["end"] + 1
    move_position(run, 2, 1)
    run.insert_output({**row, "source_offset": again["offset"]}, row["offset"], counted=True)
    return again


@mutant(ZOMBIE, unknown="1 records of op-pack-input are not in the ledger")
def input_stored_twice_and_acknowledged_as_the_second(run: RunData) -> Expected:
    """Nothing is asserted: the same, and the ledger knows the second one."""
    again = stored_again(run)
    next(row for row in run.ledger if row["number"] == again["number"])["offset"] = again["offset"]
    return {}


@mutant(ZOMBIE, unknown="1 records of op-pack-input are not in the ledger")
def input_of_somebody_else(run: RunData) -> Expected:
    """Nothing is asserted: an input stands in the log of which the ledger knows nothing; it came out."""
    again = stored_again(run)
    again.update(number=900_000, digest=again["digest"] ^ 1)
    change(run, run.made_of(2, again["offset"]), number=again["number"], digest=again["digest"])
    return {}


@mutant(ZOMBIE)
def phantom_of_an_input_of_somebody_else(run: RunData) -> Expected:
    """Somebody else's input came out, and a second output names it, with a number that no input has."""
    input_of_somebody_else(run)
    row = max(each_of(run, "output", 2), key=lambda each: int(each["source_offset"]))
    more = {**row, "number": 950_000, "digest": row["digest"] ^ 2}
    return {"phantom": {place_of(run.insert_output(more, row["offset"], counted=True))}}


@mutant(ZOMBIE, "ledger", unknown="1 outputs name offsets of the input topic that the ledger does not have")
def ledger_mode_input_stored_twice(run: RunData) -> Expected:
    """Ledger mode, nothing is asserted: an input stands in the log a second time, which the ledger does not know; both
    came out."""
    stored_again(run)
    return {}


@mutant(ZOMBIE, "ledger", unknown="1 outputs name offsets of the input topic that the ledger does not have")
def ledger_mode_input_of_somebody_else(run: RunData) -> Expected:
    """Ledger mode, nothing is asserted: an input stands in the log of which the ledger knows nothing; it came out."""
    return input_of_somebody_else(run)


@mutant(ZOMBIE, "ledger")
def ledger_mode_input_stored_twice_and_copied_thrice(run: RunData) -> Expected:
    """Ledger mode: the same input again, and two outputs name it. At most one of them is right."""
    again = run.made_of(2, stored_again(run)["offset"])
    more = run.insert_output(again, again["offset"], counted=True)
    return {"duplicate": {place_of(again), place_of(more)}}


@mutant(ZOMBIE, "ledger", unknown="1 outputs name offsets of the input topic that the ledger does not have")
def ledger_mode_input_stored_twice_and_copied_as_the_second(run: RunData) -> Expected:
    """Ledger mode, nothing is asserted: the same input again, and its only output names the offset that the ledger does
    not have."""
    _copied_as_the_second(run)
    return {}


@mutant(ZOMBIE, "ledger", unknown="1 outputs name offsets of the input topic that the ledger does not have")
def ledger_mode_input_stored_twice_and_copied_elsewhere(run: RunData) -> Expected:
    """Ledger mode, nothing is asserted: the same, and that output is in another partition, where the record that it
    names may belong."""
    again = _copied_as_the_second(run)
    run.remove_output(again)
    insert_behind(run, again, pick(run))
    return {}


def _copied_as_the_second(run: RunData) -> Row:
    """Put an input into the log once more, so that only the second one has an output; returns that."""
    again = run.made_of(2, stored_again(run)["offset"])
    run.remove_output(next(row for row in run.outputs if row["number"] == again["number"] and row is not again))
    return again


@mutant(ZOMBIE, "ledger", unknown="2 outputs name offsets of the input topic that the ledger does not have")
def ledger_mode_info_stored_twice(run: RunData) -> Expected:
    """Ledger mode, nothing is asserted: an input that was never acknowledged has two outputs, which name two offsets.
    The log may have it at both."""
    return info_stored_twice(run)


@mutant(ZOMBIE, "ledger", alone=True)
def ledger_mode_output_of_nobody(run: RunData) -> Expected:
    """Ledger mode: an output has a number that nobody sent, and names the input of another output."""
    row = pick(run)
    more = run.insert_output({**row, "number": 900_000, "digest": 5}, row["offset"], counted=True)
    return {"phantom": {place_of(more)}}


@mutant(ZOMBIE, "ledger")
def ledger_mode_offset_not_told_and_output_changed(run: RunData) -> Expected:
    """Ledger mode: an input was acknowledged without its offset, and its output has another value."""
    row = pick(run)
    forget(run, row["number"], acknowledged=True)
    change(run, row, digest=row["digest"] ^ 1)
    return {"corrupted": {place_of(row)}}


@mutant(ZOMBIE, "ledger")
def ledger_mode_offset_not_told_beside_a_changed_output(run: RunData) -> Expected:
    """Ledger mode: an input was acknowledged without its offset, and has its output and another one with another
    value."""
    row = pick(run)
    forget(run, row["number"], acknowledged=True)
    return {
        "corrupted": {place_of(run.insert_output({**row, "digest": row["digest"] ^ 1}, row["offset"], counted=True))}
    }


@mutant(ZOMBIE, "ledger", unknown="1 outputs name offsets of the input topic that the ledger does not have")
def ledger_mode_stored_again_changed(run: RunData) -> Expected:
    """Ledger mode, nothing is asserted: an input may stand in the log a second time with another value, and came out
    as both."""
    again = run.made_of(2, stored_again(run)["offset"])
    change(run, again, digest=again["digest"] ^ 1)
    return {}


@mutant(ZOMBIE, "ledger")
def ledger_mode_copied_twice_and_named_beyond_the_end(run: RunData) -> Expected:
    """Ledger mode: an input has a second output, which names an offset that the input topic does not have yet."""
    row = pick(run)
    beyond = run.pinned("input", row["source_partition"])["end"]
    more = run.insert_output({**row, "source_offset": beyond}, row["offset"], counted=True)
    return {"duplicate": {place_of(row), place_of(more)}}


@mutant(ZOMBIE, alone=True)
def input_stored_twice_and_copied_once(run: RunData) -> Expected:
    """An input stands in the log a second time, and only the first came out: just what the ledger acknowledges."""
    again = stored_again(run)
    row = run.made_of(2, again["offset"])
    return lose(run, row)


@mutant(ZOMBIE, unknown="1 records of op-pack-input are not in the ledger")
def info_stored_twice(run: RunData) -> Expected:
    """Nothing is asserted: an input that was never acknowledged stands in the log twice; both came out."""
    before = {row["number"]: row["offset"] for row in run.inputs if row["partition"] == 2}
    again = stored_again(run)
    assert again["number"] in before
    forget(run, again["number"])
    return {}


@mutant(ZOMBIE, unknown="1 records of op-pack-input are not in the ledger")
def info_stored_twice_out_of_one(run: RunData) -> Expected:
    """Nothing is asserted: the same, and both outputs name the first of them. Somebody wrote to the input who should
    not have."""
    info_stored_twice(run)
    run.made_of(2, run.inputs[-1]["offset"])["source_offset"] -= 1
    return {}


@mutant(ZOMBIE)
def stored_again_changed_and_copied_as_the_first(run: RunData) -> Expected:
    """An input stands in the log a second time with another value, which the ledger does not know; what came out of it
    is what the first one gives: that one is doubled, and the other lost."""
    info_stored_twice(run)
    again = run.inputs[-1]
    again["digest"] ^= 1
    rows = [row for row in run.outputs if row["number"] == again["number"]]
    return {"duplicate": {place_of(row) for row in rows}, "lost": {("input", 2, again["offset"])}}


@mutant(DELETES, unknown="input/0 starts at 79: no fault deleted its records beyond 77")
def deleted_further_than_the_fault(run: RunData) -> Expected:
    """Nothing is asserted: the log starts behind the low watermark that the brokers gave back to the fault."""
    start = run.pinned("input", 0)
    start["start"] += 2
    run.inputs = [row for row in run.inputs if (row["partition"], row["offset"] < start["start"]) != (0, True)]
    return {}


def _remove_outputs(run: RunData, number: int) -> None:
    """An input has no output on any topic."""
    for each in [each for each in run.outputs if each["number"] == number]:
        run.remove_output(each)


def _gone(run: RunData, expected: Expected) -> Expected:
    """An input that is gone, as if its offset had never been told: it is lost at the end of its partition, which is
    where it was."""
    [(_, partition, offset)] = expected["input-lost"]
    row = next(row for row in run.ledger if (row["partition"], row["offset"]) == (partition, offset))
    forget(run, row["number"], acknowledged=True)
    return expected


def _deleted(run: RunData) -> Row:
    """The output of an input below the log start."""
    return run.made_of(0, run.pinned("input", 0)["start"] - 5)
