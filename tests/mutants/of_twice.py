"""Mutants of a pipeline that makes two equal records of each input on one topic."""

from tests.mutants.catalogue import (
    TWICE,
    Expected,
    each_of,
    forget,
    input_of,
    into_another_partition,
    lose,
    mutant,
    of_transaction,
    pick,
    place_of,
    positions_of,
    same_transaction,
    swap,
    swap_with_next,
)
from tests.mutants.of_records import header_names_another_offset, ledger_mode_info_took_effect
from tests.mutants.twice import PAIR
from tests.rundata import Row, RunData

_SPREAD = "tests/mutants/twice.py:SPREAD"


@mutant(TWICE)
def one_of_two_lost(run: RunData) -> Expected:
    """Of the two records that an input must have on one topic, one is missing."""
    row = pick(run)
    return lose(run, row)


@mutant(TWICE, alone=True)
def one_of_each_two_lost(run: RunData) -> Expected:
    """Of the two records that each input must have, one is missing: what is there looks like a whole copy."""
    first: dict[int, Row] = {}
    for row in run.outputs:
        first.setdefault(row["number"], row)
    for row in first.values():
        run.remove_output(row)
    return {"lost": set(map(input_of, first.values()))}


@mutant(TWICE)
def one_of_two_names_the_input_before(run: RunData) -> Expected:
    """Of the two records of an input, one has a header that names the offset before its input's."""
    return header_names_another_offset(run)


@mutant(TWICE)
def three_of_two(run: RunData) -> Expected:
    """Of the two records that an input must have on one topic, there are three."""
    row = pick(run)
    run.insert_output(row, row["offset"], counted=True)
    return {"duplicate": {place_of(each) for each in run.outputs if each["number"] == row["number"]}}


@mutant(TWICE, "ledger")
def ledger_mode_one_of_two_lost(run: RunData) -> Expected:
    """Ledger mode: of the two records that an input must have on one topic, one is missing."""
    return one_of_two_lost(run)


@mutant(TWICE, "ledger")
def ledger_mode_three_of_two(run: RunData) -> Expected:
    """Ledger mode: of the two records that an input must have on one topic, there are three."""
    return three_of_two(run)


@mutant(TWICE)
def one_of_two_swapped(run: RunData) -> Expected:
    """The second record of an input stands behind the first one of the next input."""
    return {"reordered": {place_of(_second_swapped(run))}}


@mutant(TWICE, "ledger")
def ledger_mode_one_of_two_swapped(run: RunData) -> Expected:
    """Ledger mode: the same, in a run in which the offset of another input is not known."""
    row = _second_swapped(run)
    forget(run, next(each["number"] for each in run.outputs if each["number"] != row["number"]), acknowledged=True)
    return {"reordered": {place_of(row)}}


@mutant(TWICE)
def position_of_two_aborted(run: RunData) -> Expected:
    """A transaction's outputs were committed and its offsets aborted; another input's offset is not known."""
    row = pick(run)
    expected = {"offset-divergence": {place_of(each) for each in of_transaction(run, row)}}
    for each in positions_of(run, row):
        each["fate"] = "aborted"
    mine = {each["number"] for each in of_transaction(run, row)}
    forget(run, next(each["number"] for each in run.outputs if each["number"] not in mine), acknowledged=True)
    return expected


@mutant(TWICE)
def one_of_two_names_the_next(run: RunData) -> Expected:
    """Of the two records of an input, one says that it was made from the next input."""
    row = pick(run)
    row["source_offset"] += 1
    return {"corrupted": {place_of(row)}}


@mutant(TWICE)
def one_of_two_in_another_partition(run: RunData) -> Expected:
    """Of the two records of an input, one stands in another partition of the topic."""
    return {"corrupted": {place_of(into_another_partition(run, pick(run)))}}


def _next(run: RunData, row: Row) -> Row:
    """The output at the next offset, or the row itself where there is none."""
    return next((each for each in each_of(run, "output", 0) if each["offset"] == row["offset"] + 1), row)


def _second_swapped(run: RunData) -> Row:
    """Exchange the second record of an input with the first one of the next; returns the latter's new neighbour."""
    row = next(
        each
        for each in sorted(each_of(run, "output", 0), key=lambda each: int(each["offset"]))[40:]
        if (after := _next(run, each))["number"] != each["number"] and same_transaction(after, each)
    )
    return swap_with_next(run, row)


@mutant(TWICE, pipeline=_SPREAD, alone=True)
def spread_over_two_partitions(run: RunData) -> Expected:
    """Harmless: two inputs have a record in each of two partitions; the offset of another input is not known."""
    _spread(run)
    forget(run, next(each["number"] for each in run.outputs if each["number"] not in PAIR), acknowledged=True)
    return {}


@mutant(TWICE, "ledger", pipeline=_SPREAD, alone=True)
def ledger_mode_spread_over_two_partitions(run: RunData) -> Expected:
    """Ledger mode, harmless: two inputs have a record in each of two partitions."""
    _spread(run)
    return {}


@mutant(TWICE, pipeline=_SPREAD, alone=True)
def spread_with_two_in_one_of_them(run: RunData) -> Expected:
    """An input that must have a record in each of two partitions has two in one of them and one in the other."""
    [[first, second], _] = _spread(run)
    more = run.insert_output(second, second["offset"], counted=True)
    return {"duplicate": {place_of(each) for each in (first, second, more)}}


@mutant(TWICE, pipeline=_SPREAD, alone=True, unknown="the table of a partition is incomplete: op-pack-output/1")
def spread_and_one_unread(run: RunData) -> Expected:
    """Nothing is asserted: of an input with a record in each of two partitions, the reader missed the one in the other
    partition."""
    [[_, second], _] = _spread(run)
    run.outputs.remove(second)
    return {}


@mutant(TWICE, pipeline=_SPREAD, alone=True)
def spread_over_one_partition(run: RunData) -> Expected:
    """Two inputs must have a record in each of two partitions, and have both in one of them."""
    return {"corrupted": {place_of(each) for each in run.outputs if each["number"] in PAIR}}


@mutant(TWICE, pipeline=_SPREAD, alone=True)
def spread_and_one_lost(run: RunData) -> Expected:
    """Of two inputs that must have a record in each of two partitions, one lacks that in the other partition."""
    _, [_, second] = _spread(run)
    run.remove_output(second)
    return {"lost": {input_of(second)}}


@mutant(TWICE, "ledger", pipeline=_SPREAD, alone=True)
def ledger_mode_spread_and_one_lost(run: RunData) -> Expected:
    """Ledger mode: of two inputs that must have a record in each of two partitions, one lacks a record."""
    return spread_and_one_lost(run)


@mutant(TWICE, "ledger")
def ledger_mode_one_of_two_in_another_partition(run: RunData) -> Expected:
    """Ledger mode: of the two records of an input, one stands in another partition of the topic."""
    return one_of_two_in_another_partition(run)


@mutant(TWICE, "ledger")
def ledger_mode_one_of_two_names_the_next(run: RunData) -> Expected:
    """Ledger mode: of the two records of an input, one says that it was made from the next input."""
    return one_of_two_names_the_next(run)


@mutant(TWICE, "ledger")
def ledger_mode_position_of_two_aborted(run: RunData) -> Expected:
    """Ledger mode: a transaction's outputs were committed and its offsets aborted; another input's offset is not
    known."""
    return position_of_two_aborted(run)


def _spread(run: RunData) -> list[list[Row]]:
    """Exchange the second records of the pair; returns the records of each of the two inputs."""
    pair = [sorted((row for row in run.outputs if row["number"] == number), key=place_of) for number in PAIR]
    [_, one], [_, other] = pair
    swap(run, one, other)
    return [sorted((row for row in run.outputs if row["number"] == number), key=place_of) for number in PAIR]


@mutant(TWICE, "ledger")
def ledger_mode_info_of_two(run: RunData) -> Expected:
    """Ledger mode, harmless: an input that was never acknowledged has the two outputs that it must have."""
    return ledger_mode_info_took_effect(run)
