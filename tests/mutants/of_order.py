"""Mutants of order: records of a source partition that stand before earlier ones."""

from tests.mutants.catalogue import (
    ABORTS,
    ORIGIN,
    ZOMBIE,
    Expected,
    change,
    forget,
    input_of,
    mutant,
    of_transaction,
    pick,
    place_of,
    resent,
    swap,
    swap_with_next,
)
from tests.rundata import RunData


@mutant(ZOMBIE)
def swapped_neighbours(run: RunData) -> Expected:
    """Two records of a batch stand in the wrong order."""
    return {"reordered": {place_of(swap_with_next(run, pick(run)))}}


@mutant(ZOMBIE)
def swapped_far_apart(run: RunData) -> Expected:
    """Two records of one partition, in different transactions, stand in each other's place."""
    row, other = pick(run, nth=30), pick(run, nth=90)
    swap(run, row, other)
    return {
        "reordered": {("output", 0, row["offset"] + 1), place_of(other)},
        "unprotected": {place_of(row), place_of(other)},
    }


@mutant(ZOMBIE)
def moved_ahead(run: RunData) -> Expected:
    """A record stands before others of its partition that come earlier in the source."""
    late = pick(run, nth=80)
    run.remove_output(late)
    moved = run.insert_output(late, pick(run, nth=30)["offset"], counted=True)
    return {"reordered": {("output", 0, moved["offset"] + 1)}, "unprotected": {place_of(moved)}}


@mutant(ZOMBIE)
def in_the_place_of_a_lost_one(run: RunData) -> Expected:
    """The last record of a transaction stands in the place of one that was never sent, before those between."""
    [_, lost, after, *_, last] = sorted(
        (row for row in of_transaction(run, pick(run)) if row["partition"] == 0), key=lambda row: int(row["offset"])
    )
    expected = {"lost": {input_of(lost)}, "reordered": {place_of(after)}}
    run.remove_output(last)
    change(run, lost, **{key: last[key] for key in ORIGIN})
    return expected


@mutant(ZOMBIE, "ledger")
def ledger_mode_info_swapped(run: RunData) -> Expected:
    """Ledger mode: an input that was never acknowledged came out behind the one after it."""
    row = pick(run)
    forget(run, row["number"])
    return swapped_neighbours(run)


@mutant(ABORTS)
def doubled_on_one_topic_swapped_on_the_other(run: RunData) -> Expected:
    """An order was paid twice, and stands in the stock behind the one after it: two causes."""
    row = pick(run, "stock", 0)
    paid = run.output(row["number"], "payment")
    again = resent(run, paid)
    other = swap_with_next(run, row)
    return {"duplicate": {place_of(paid), place_of(again)}, "reordered": {place_of(other)}}
