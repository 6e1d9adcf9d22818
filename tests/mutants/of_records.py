"""Mutants of single records: lost, doubled, swapped, changed, forged."""

from onceproof.verifiers.evidence.tables import TRANSACTION
from tests.mutants.catalogue import (
    ABORTS,
    ZOMBIE,
    Expected,
    change,
    each_of,
    forget,
    input_of,
    insert_behind,
    lose,
    mutant,
    pick,
    place_of,
    resent,
)
from tests.rundata import Row, RunData


def _ends(run: RunData, partition: int) -> list[Row]:
    return sorted(each_of(run, "output", partition), key=lambda row: int(row["source_offset"]))


@mutant(ZOMBIE)
def lost_in_the_middle(run: RunData) -> Expected:
    """One input of a transaction was never sent."""
    row = pick(run)
    return lose(run, row)


@mutant(ZOMBIE)
def lost_the_first(run: RunData) -> Expected:
    """The first input of a partition was never sent."""
    row = _ends(run, 1)[0]
    return lose(run, row)


@mutant(ZOMBIE)
def lost_the_last(run: RunData) -> Expected:
    """The last input of a partition was never sent."""
    row = _ends(run, 2)[-1]
    return lose(run, row)


@mutant(ABORTS)
def lost_on_one_topic(run: RunData) -> Expected:
    """An order reached the stock, and was never sent to the payment."""
    row = pick(run, "payment", 1)
    return lose(run, row)


@mutant(ZOMBIE)
def lost_of_info(run: RunData) -> Expected:
    """An input that was never acknowledged but is in the log has no output."""
    row = pick(run)
    forget(run, row["number"])
    return lose(run, row)


@mutant(ZOMBIE)
def doubled(run: RunData) -> Expected:
    """One input was sent again in a later transaction."""
    row = pick(run)
    again = resent(run, row)
    return {"duplicate": {place_of(row), place_of(again)}}


@mutant(ZOMBIE)
def doubled_at_once(run: RunData) -> Expected:
    """One record stands twice in its batch."""
    row = pick(run, partition=1)
    again = run.insert_output(row, row["offset"], counted=True)
    return {"duplicate": {place_of(row), place_of(again)}}


@mutant(ABORTS)
def doubled_on_one_topic(run: RunData) -> Expected:
    """An order was paid twice, and is in stock once."""
    row = pick(run, "payment", 0)
    again = resent(run, row)
    return {"duplicate": {place_of(row), place_of(again)}}


@mutant(ZOMBIE)
def doubled_elsewhere(run: RunData) -> Expected:
    """A second copy of a record stands in another partition."""
    row = pick(run, partition=0)
    beside = pick(run, partition=1)
    again = insert_behind(run, row, beside)
    return {"duplicate": {place_of(row), place_of(again)}}


@mutant(ZOMBIE)
def doubled_of_info(run: RunData) -> Expected:
    """An input that was never acknowledged, and is not in the log, has two outputs."""
    number = 900_000
    run.ledger.append({"number": number, "partition": 0, "offset": None, "digest": 5})
    row = pick(run)
    own = {**row, "number": number, "digest": 5}
    first = run.insert_output(own, row["offset"], counted=True)
    second = run.insert_output(own, row["offset"] + 1, counted=True)
    return {"duplicate": {place_of(first), place_of(second)}}


@mutant(ZOMBIE)
def byte_flipped(run: RunData) -> Expected:
    """One byte of a value is another; its number can still be read."""
    row = pick(run)
    change(run, row, digest=row["digest"] ^ 1)
    return {"corrupted": {place_of(row)}}


@mutant(ZOMBIE)
def byte_flipped_and_another_lost(run: RunData) -> Expected:
    """One byte of a value is another, and another input of its partition was never sent: two causes."""
    expected = byte_flipped(run)
    lost = pick(run, nth=90)
    run.remove_output(lost)
    return {**expected, "lost": {input_of(lost)}}


@mutant(ABORTS)
def broken_on_one_topic_lost_on_the_other(run: RunData) -> Expected:
    """An order's payment cannot be read, and it is not in stock: the broken one is no word on the other topic."""
    row = pick(run, "payment", 0)
    run.remove_output(run.output(row["number"], "stock"))
    change(run, row, number=None, digest=row["digest"] ^ 1)
    return {"corrupted": {place_of(row)}, "lost": {input_of(row)}}


@mutant(ZOMBIE)
def number_garbled(run: RunData) -> Expected:
    """A value is so broken that its number cannot be read; its header names its input."""
    row = pick(run, partition=1)
    change(run, row, number=None, digest=row["digest"] ^ 1)
    return {"corrupted": {place_of(row)}}


@mutant(ZOMBIE)
def number_of_another(run: RunData) -> Expected:
    """A value has the number of another input and is not that input's."""
    row, other = pick(run), pick(run, partition=1)
    change(run, row, number=other["number"], digest=row["digest"] ^ 1)
    return {"corrupted": {place_of(row)}}


@mutant(ZOMBIE)
def header_missing(run: RunData) -> Expected:
    """A record came without its header."""
    row = pick(run)
    change(run, row, source_partition=None, source_offset=None, worker=None, incarnation=None, transaction=None)
    return {"corrupted": {place_of(row)}}


@mutant(ZOMBIE)
def phantom_in_the_place_of_an_output(run: RunData) -> Expected:
    """Two outputs in the middle of a transaction were never sent, and in their place another producer has committed a
    record of its own."""
    row = pick(run)
    after = run.made_of(row["source_partition"], row["source_offset"] + 1)
    run.remove_output(after)
    run.remove_output(row)
    run.insert_aborted("output", 0, row["offset"] - 1)
    for batch in run.log("output", 0):
        batch["fate"] = "visible" if batch["first"] == row["offset"] else batch["fate"]
    seen = {
        **run.seen(run.made_of(0, row["source_offset"] - 1)),
        "offset": row["offset"],
        "number": 900_000,
        "digest": 5,
    }
    nobody = dict.fromkeys(("source_partition", "source_offset", *TRANSACTION))
    run.observed.append(seen)
    run.outputs.append({**row, **nobody, "number": 900_000, "digest": 5})
    return {"lost": {input_of(row), input_of(after)}, "phantom": {place_of(row)}}


@mutant(ZOMBIE)
def header_names_another_offset(run: RunData) -> Expected:
    """A header names the offset before its input's."""
    row = pick(run)
    change(run, row, source_offset=row["source_offset"] - 1)
    return {"corrupted": {place_of(row)}}


@mutant(ZOMBIE, "ledger")
def ledger_mode_header_names_another_offset(run: RunData) -> Expected:
    """Ledger mode: a header names the offset before its input's."""
    return header_names_another_offset(run)


@mutant(ZOMBIE)
def header_names_a_lost_one(run: RunData) -> Expected:
    """An input was never sent, and the header of another's output names it."""
    row = pick(run)
    lost = run.made_of(row["source_partition"], row["source_offset"] + 1)
    expected = {"lost": {input_of(lost)}, "corrupted": {place_of(row)}}
    run.remove_output(lost)
    change(run, row, source_offset=lost["source_offset"])
    return expected


@mutant(ZOMBIE)
def header_names_another_partition(run: RunData) -> Expected:
    """A header names another partition than its input's."""
    row = pick(run)
    change(run, row, source_partition=1)
    return {"corrupted": {place_of(row)}}


@mutant(ZOMBIE)
def wrong_destination(run: RunData) -> Expected:
    """A record went to another partition than its key's."""
    row, beside = pick(run, partition=0), pick(run, partition=1)
    run.remove_output(row)
    moved = insert_behind(run, row, beside)
    return {"corrupted": {place_of(moved)}}


@mutant(ZOMBIE)
def stranger(run: RunData) -> Expected:
    """A record that nobody of the run wrote: no number, no header."""
    row = pick(run)
    nobody = dict.fromkeys(("number", "source_partition", "source_offset", "worker", "incarnation", "transaction"))
    added = run.insert_output({**row, **nobody, "digest": 1}, row["offset"], counted=True)
    return {"phantom": {place_of(added)}}


@mutant(ZOMBIE)
def never_sent(run: RunData) -> Expected:
    """A well-formed record of an input that never was, with the header of one that was."""
    row = pick(run)
    added = run.insert_output({**row, "number": 900_000, "digest": 1}, row["offset"], counted=True)
    return {"phantom": {place_of(added)}}


@mutant(ABORTS)
def on_the_other_topic(run: RunData) -> Expected:
    """A record of the stock stands on the payment: one order is paid twice and not in stock."""
    row, beside = pick(run, "stock", 0), pick(run, "payment", 0, nth=60)
    run.remove_output(row)
    moved = insert_behind(run, row, beside)
    own_place = place_of(run.output(row["number"], "payment"))
    return {"lost": {input_of(row)}, "duplicate": {own_place, place_of(moved)}}


@mutant(ZOMBIE)
def info_took_effect_once(run: RunData) -> Expected:
    """Harmless: an input that was never acknowledged, and is not in the log, has one output."""
    run.ledger.append({"number": 900_000, "partition": 0, "offset": None, "digest": 5})
    row = pick(run)
    run.insert_output({**row, "number": 900_000, "digest": 5}, row["offset"], counted=True)
    return {}


@mutant(ZOMBIE)
def info_without_effect(run: RunData) -> Expected:
    """Harmless: an input that was never acknowledged, and is not in the log, has no output."""
    run.ledger.append({"number": 900_000, "partition": 0, "offset": None, "digest": 5})
    return {}


@mutant(ABORTS)
def info_without_effect_on_two_topics(run: RunData) -> Expected:
    """Harmless: an order that was never acknowledged, and is not in the log, is neither paid nor in stock."""
    return info_without_effect(run)


@mutant(ZOMBIE)
def info_in_the_log(run: RunData) -> Expected:
    """Harmless: an input that was never acknowledged is in the log, and has its output."""
    forget(run, pick(run)["number"])
    return {}


@mutant(ZOMBIE, "ledger")
def ledger_mode_lost(run: RunData) -> Expected:
    """Ledger mode: one input was never sent."""
    row = pick(run)
    return lose(run, row)


@mutant(ZOMBIE, "ledger", unknown="output/0: 595 visible in the log, the reader saw 594 records")
def ledger_mode_output_unread(run: RunData) -> Expected:
    """Ledger mode, nothing is asserted: the reader missed an output that the log shows as visible."""
    run.outputs.remove(pick(run))
    return {}


@mutant(ZOMBIE, "ledger")
def ledger_mode_info_took_effect(run: RunData) -> Expected:
    """Ledger mode, harmless: an input that was never acknowledged has one output, wherever it stands in the log."""
    forget(run, pick(run)["number"])
    return {}


@mutant(ZOMBIE, "ledger")
def ledger_mode_info_doubled(run: RunData) -> Expected:
    """Ledger mode: an input that was never acknowledged has two outputs."""
    row = pick(run)
    forget(run, row["number"])
    again = resent(run, row)
    return {"duplicate": {place_of(row), place_of(again)}}


@mutant(ZOMBIE, "ledger")
def ledger_mode_input_changed(run: RunData) -> Expected:
    """Ledger mode, harmless to it: the input's log holds another value than was acknowledged; nobody read the input."""
    run.inputs[50]["digest"] ^= 1
    return {}


@mutant(ZOMBIE)
def lost_beside_an_unread_output(run: RunData) -> Expected:
    """An output is lost, and the reader missed one of another partition: that says nothing of the first."""
    row = pick(run)
    run.remove_output(row)
    run.outputs.remove(pick(run, partition=1))
    return {"lost": {input_of(row)}}
