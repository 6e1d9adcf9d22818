"""Mutants of a pipeline that makes two equal records of each input on one topic."""

from tests.mutants.catalogue import TWICE, Expected, input_of, mutant, pick, place_of
from tests.mutants.of_records import ledger_mode_info_took_effect
from tests.rundata import Row, RunData


@mutant(TWICE)
def one_of_two_lost(run: RunData) -> Expected:
    """Of the two records that an input must have on one topic, one is missing."""
    row = pick(run)
    run.remove_output(row)
    return {"lost": {input_of(row)}}


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
def three_of_two(run: RunData) -> Expected:
    """Of the two records that an input must have on one topic, there are three."""
    row = pick(run)
    run.insert_output(row, row["offset"], counted=True)
    return {"duplicate": {place_of(each) for each in run.outputs if each["number"] == row["number"]}}


@mutant(TWICE, "ledger")
def ledger_mode_info_of_two(run: RunData) -> Expected:
    """Ledger mode, harmless: an input that was never acknowledged has the two outputs that it must have."""
    return ledger_mode_info_took_effect(run)
