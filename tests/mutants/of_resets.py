"""Mutants of deletes: inputs that a consumer skipped or did again because the log start moved, and lookalikes."""

from tests.mutants.catalogue import DELETES, Expected, input_of, lose, mutant, redone
from tests.rundata import Row, RunData


@mutant(DELETES)
def skipped_by_a_reset(run: RunData) -> Expected:
    """Records were deleted past the position, and the consumer went on at the log start."""
    mark = _mark(run)
    mark["position"] = mark["low_watermark"] - 6
    gone = [
        row
        for row in run.outputs
        if row["source_partition"] == 0 and mark["position"] <= row["source_offset"] < mark["low_watermark"]
    ]
    for row in gone:
        run.remove_output(row)
    return {"reset-skip": {input_of(row) for row in gone}}


@mutant(DELETES, "ledger", alone=True)
def skipped_from_the_first_on(run: RunData) -> Expected:
    """Ledger mode: records were deleted before any was processed, and the consumer began at the log start."""
    mark = _mark(run)
    mark.update(position=0, low_watermark=6)
    # Elsewhere nothing was deleted, so that the outputs are just those of what the log still holds.
    for partition, start in ((0, 6), (1, 0), (2, 0)):
        run.pinned("input", partition)["start"] = start
    gone = [row for row in run.outputs if row["source_partition"] == 0 and row["source_offset"] < 6]
    for row in gone:
        run.remove_output(row)
    return {"reset-skip": {input_of(row) for row in gone}}


@mutant(DELETES)
def lost_before_a_skip(run: RunData) -> Expected:
    """The input before those that a reset skipped is missing too: that is no reset's doing."""
    expected = skipped_by_a_reset(run)
    mark = _mark(run)
    row = run.made_of(0, mark["position"] - 1)
    return {**expected, **lose(run, row)}


@mutant(DELETES)
def lost_in_the_span_of_a_skip(run: RunData) -> Expected:
    """The consumer had read three inputs beyond the position before it skipped the rest; one of them is missing."""
    expected = skipped_by_a_reset(run)
    mark = _mark(run)
    mark["position"] -= 3
    row = run.made_of(0, mark["position"] + 1)
    return {**expected, **lose(run, row)}


@mutant(DELETES)
def lost_after_a_skip(run: RunData) -> Expected:
    """The first input at the log start is missing too: that is no reset's doing."""
    expected = skipped_by_a_reset(run)
    row = run.made_of(0, _mark(run)["low_watermark"])
    return {**expected, **lose(run, row)}


@mutant(DELETES)
def lost_in_another_partition(run: RunData) -> Expected:
    """An input of another partition, at an offset that a reset skipped elsewhere, is missing."""
    expected = skipped_by_a_reset(run)
    row = run.made_of(2, _mark(run)["position"])
    return {**expected, **lose(run, row)}


@mutant(DELETES)
def processed_again_after_a_reset(run: RunData) -> Expected:
    """The consumer went back to a log start behind its position, and did again what follows."""
    mark = deleted_behind(run)
    rows = [run.made_of(0, offset) for offset in range(mark["low_watermark"], mark["position"])]
    reset(run, mark["position"], mark["low_watermark"])
    return {"reset-reprocess": redone(run, rows)}


@mutant(DELETES)
def doubled_before_a_reset(run: RunData) -> Expected:
    """An input below the log start was done again: no reset goes there."""
    mark = deleted_behind(run)
    reset(run, mark["position"], mark["low_watermark"])
    rows = [run.made_of(0, mark["low_watermark"] - 1)]
    return {"duplicate": redone(run, rows)}


@mutant(DELETES)
def doubled_at_the_position(run: RunData) -> Expected:
    """The input at the position itself was done again: a reset explains only those below it."""
    mark = deleted_behind(run)
    reset(run, mark["position"], mark["low_watermark"])
    rows = [run.made_of(0, mark["position"])]
    return {"duplicate": redone(run, rows)}


@mutant(DELETES)
def doubled_without_going_back(run: RunData) -> Expected:
    """Inputs behind the position were done again, and no worker was seen to go back."""
    mark = deleted_behind(run)
    rows = [run.made_of(0, offset) for offset in range(mark["low_watermark"], mark["position"])]
    return {"duplicate": redone(run, rows)}


@mutant(DELETES)
def doubled_after_going_ahead(run: RunData) -> Expected:
    """Inputs behind the position were done again, and the worker was seen to go ahead, not back."""
    expected = doubled_without_going_back(run)
    mark = _mark(run)
    reset(run, mark["low_watermark"], mark["position"])
    return expected


def _mark(run: RunData) -> Row:
    """What was deleted of input/0, and the position then."""
    deleted = next(e for e in run.events if e["event"] == "records-deleted")
    return next(mark for mark in deleted["partitions"] if mark["partition"] == 0)


def deleted_behind(run: RunData) -> Row:
    """The same, when the delete had ended five records before the position."""
    mark = _mark(run)
    mark["low_watermark"] = mark["position"] - 5
    return mark


def reset(run: RunData, expected: int, found: int, worker: int = 1) -> None:
    """A worker told that its position on input/0 was another than it had left it."""
    run.events.append(
        {
            "at": 1.0,
            "source": f"worker-{worker}",
            "incarnation": 1,
            "event": "position-reset",
            "t": 1.0,
            "partition": 0,
            "expected": expected,
            "found": found,
        }
    )
