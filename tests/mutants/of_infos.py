"""Mutants of commits that were called and never answered: `info` in the history."""

from tests.mutants.catalogue import (
    ABORTS,
    Expected,
    each_of,
    final,
    info_without_outputs,
    lose,
    mutant,
    place_of,
)
from tests.rundata import Row, RunData


@mutant(ABORTS)
def position_of_an_info_without_outputs(run: RunData) -> Expected:
    """Commit was called and its answer lost; the outputs were aborted and done again, the position was committed."""
    positions = info_without_outputs(run, "stock")
    return {"offset-divergence": {("input", each["partition"], each["position"]) for each in positions}}


@mutant(ABORTS)
def info_without_outputs_beside_a_lost_input_of_another_partition(run: RunData) -> Expected:
    """The same, and an input of another partition has no output, whose offset is among those that the transaction read
    of its own partitions."""
    sources = run.invoke(final(run, "stock")[0])["sources"]
    others = [row for row in run.outputs if row["topic"] == "stock" and str(row["source_partition"]) not in sources]
    expected = position_of_an_info_without_outputs(run)
    row = next(row for row in others if any(first <= row["source_offset"] < after for first, after in sources.values()))
    return {**expected, **lose(run, row)}


@mutant(ABORTS)
def info_without_outputs_behind_a_lost_input(run: RunData) -> Expected:
    """The same, and an input that an earlier transaction read from the same partition has no output."""
    sources = run.invoke(final(run, "stock")[0])["sources"]
    expected = position_of_an_info_without_outputs(run)
    row = next(row for row in each_of(run, "stock", 0)[60:] if _before(row, sources))
    return {**expected, **lose(run, row)}


@mutant(ABORTS)
def info_without_outputs_and_an_input_done_twice(run: RunData) -> Expected:
    """The same, and one of the inputs has two outputs: it is not the reason why the transaction has none."""
    numbers = {row["number"] for row in final(run, "stock") if row["topic"] == "stock"}
    expected = position_of_an_info_without_outputs(run)
    row = next(row for row in run.outputs if row["topic"] == "stock" and row["number"] in numbers)
    again = run.insert_output(row, row["offset"], counted=True)
    return {**expected, "duplicate": {place_of(row), place_of(again)}}


def _before(row: Row, sources: Row) -> bool:
    """Whether an output's input is before those that a transaction read from its partition."""
    span = sources.get(str(row["source_partition"]))
    return span is not None and bool(row["source_offset"] < span[0])
