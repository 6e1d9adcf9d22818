"""Mutants of transactions: torn, shown though aborted, hidden though committed, done twice."""

from tests.mutants.catalogue import (
    ABORTS,
    ZOMBIE,
    Expected,
    aborted,
    each_of,
    final,
    info_without_outputs,
    input_of,
    mutant,
    of_transaction,
    pick,
    place_of,
    redo,
    redone,
)
from tests.rundata import Row, RunData


@mutant(ZOMBIE)
def transaction_never_sent(run: RunData) -> Expected:
    """A whole transaction sent nothing, and committed its position."""
    rows = of_transaction(run, pick(run))
    places = {input_of(row) for row in rows}
    for row in rows:
        run.remove_output(row)
    return {"lost": places}


@mutant(ZOMBIE)
def transaction_done_twice(run: RunData) -> Expected:
    """A whole transaction was done again by a later one."""
    rows = of_transaction(run, pick(run, partition=1))
    return {"duplicate": redone(run, rows)}


@mutant(ZOMBIE)
def acknowledged_and_gone(run: RunData) -> Expected:
    """A record was acknowledged, its transaction committed, and the log does not have it."""
    row = pick(run)
    part = _part(run, row)
    run.remove_output(row, claimed=True)
    return {"torn-transaction": {("output", 0, part[1])}}


@mutant(ABORTS)
def half_committed_within_a_topic(run: RunData) -> Expected:
    """A transaction committed in one partition of a topic and aborted in another of the same topic."""
    row = _spread(run, "payment")
    part = _part(run, row)
    run.hide(row["topic"], row["partition"], part[1], part[2])
    return {"torn-transaction": {(row["topic"], row["partition"], part[1])}}


@mutant(ABORTS)
def half_committed_across_topics(run: RunData) -> Expected:
    """A transaction committed on the stock and aborted on the payment, in every partition."""
    row = pick(run, "payment", 2)
    expected = set()
    for partition in range(3):
        place = f"{run.prefix}payment/{partition}"
        part = run.invoke(row)["outputs"].get(place)
        if part:
            run.hide("payment", partition, part[1], part[2])
            expected.add(("payment", partition, part[1]))
    return {"torn-transaction": expected}


@mutant(ABORTS)
def half_of_an_info(run: RunData) -> Expected:
    """Commit was called and its answer lost; the stock shows the transaction, one partition of the payment does not."""
    row = pick(run, "payment", 1)
    run.outcome(row)["type"] = "info"
    part = _part(run, row)
    run.hide("payment", 1, part[1], part[2])
    return {"torn-transaction": {("payment", 1, part[1])}}


@mutant(ABORTS)
def half_committed_between_two_that_are_lost(run: RunData) -> Expected:
    """A transaction is torn, and the inputs right before and right behind its own were never paid: three causes."""
    row = _spread(run, "payment")
    part, lost = _part(run, row), set()
    run.hide(row["topic"], row["partition"], part[1], part[2])
    for partition, (first, after) in run.invoke(row)["sources"].items():
        for offset in (first - 1, after):
            beside = next(
                (each for each in each_of(run, "payment", int(partition)) if each["source_offset"] == offset), None
            )
            if beside is not None:
                lost.add(input_of(beside))
                run.remove_output(beside)
    return {"torn-transaction": {(row["topic"], row["partition"], part[1])}, "lost": lost}


@mutant(ABORTS)
def lost_beside_an_unread_one_of_the_other_topic(run: RunData) -> Expected:
    """An input is not in stock, and the reader missed a payment: that partition says nothing of this one."""
    row = pick(run, "stock", 0)
    run.remove_output(row)
    run.outputs.remove(pick(run, "payment", 0, nth=90))
    return {"lost": {input_of(row)}}


@mutant(ABORTS)
def part_still_open(run: RunData) -> Expected:
    """The marker of one partition was never written: its records are in no reader's sight."""
    row = pick(run, "payment", 0)
    part = _part(run, row)
    run.hide("payment", 0, part[1], part[2])
    for batch in run.log("payment", 0):
        batch["fate"] = "open" if part[1] <= batch["first"] <= part[2] else batch["fate"]
    return {"torn-transaction": {("payment", 0, part[1])}}


@mutant(ABORTS)
def half_committed_and_done_again(run: RunData) -> Expected:
    """Half a transaction took effect, and then all of it was done again: torn, and no duplicate beside it."""
    rows = final(run, "payment")
    redo(run, rows)
    part = _part(run, next(row for row in rows if row["topic"] == "payment"))
    place = next(row["partition"] for row in rows if row["topic"] == "payment")
    run.hide("payment", place, part[1], part[2])
    return {"torn-transaction": {("payment", place, part[1])}}


@mutant(ZOMBIE)
def moved_to_another_transaction(run: RunData) -> Expected:
    """A record stands in a later transaction than the one that was acknowledged for it."""
    row, later = pick(run, nth=30), pick(run, nth=90)
    part = _part(run, row)
    run.remove_output(row, claimed=True)
    run.insert_output(row, later["offset"])
    return {"torn-transaction": {("output", 0, part[1])}}


@mutant(ZOMBIE)
def info_committed(run: RunData) -> Expected:
    """Harmless: commit was called, its answer lost, and it took effect."""
    run.outcome(pick(run))["type"] = "info"
    return {}


@mutant(ABORTS)
def info_aborted(run: RunData) -> Expected:
    """Harmless: commit was called, its answer lost, and it did not take effect; a later transaction did it again."""
    for each in info_without_outputs(run, "payment"):
        each["fate"] = "aborted"
    return {}


@mutant(ZOMBIE)
def another_one_in_between(run: RunData) -> Expected:
    """Harmless: among the records of a transaction stands one of another, which was aborted."""
    row = pick(run)
    run.insert_aborted(row["topic"], row["partition"], row["offset"])
    return {}


@mutant(ZOMBIE)
def aborted_and_read(run: RunData) -> Expected:
    """Collect's reader shows one record of a transaction that the log has as aborted."""
    [batch, *_] = aborted(run, 0)
    row = pick(run)
    run.outputs.append({**row, "offset": batch["first"] + 1})
    return {"aborted-read": {("output", 0, batch["first"] + 1)}}


@mutant(ZOMBIE)
def aborted_and_observed(run: RunData) -> Expected:
    """The live observer was shown one record of a transaction that was aborted."""
    [batch, *_] = aborted(run, 1)
    run.observed.append({**run.observed[0], "partition": 1, "offset": batch["first"]})
    return {"aborted-read": {("output", 1, batch["first"])}}


@mutant(ZOMBIE)
def committed_without_commit(run: RunData) -> Expected:
    """The log shows a transaction as committed whose worker never came to call commit."""
    row = pick(run)
    run.events.remove(run.outcome(row))
    run.events.remove(run.invoke(row))
    return {"aborted-read": {place_of(each) for each in of_transaction(run, row)}}


@mutant(ZOMBIE)
def committed_after_an_acknowledged_abort(run: RunData) -> Expected:
    """The log shows a transaction as committed whose abort was acknowledged, and commit was never called."""
    row = pick(run)
    run.outcome(row)["type"] = "fail"
    return {"aborted-read": {place_of(each) for each in of_transaction(run, row)}}


@mutant(ZOMBIE)
def killed_right_before_its_commit(run: RunData) -> Expected:
    """A worker was killed while it stood before its call of commit, and the log shows its transaction as committed."""
    row = pick(run)
    run.events.remove(run.outcome(row))
    _stop_before_commit(run, row)
    return {"aborted-read": {place_of(each) for each in of_transaction(run, row)}}


@mutant(ZOMBIE)
def seen_before_its_commit(run: RunData) -> Expected:
    """A transaction was made visible before its worker had called commit, which it then did; the live observer saw
    some of it at once."""
    rows = of_transaction(run, pick(run))[:5]
    for row in rows:
        run.seen(row)["at"] = run.invoke(row)["t"] - 0.002
    return {"aborted-read": {place_of(row) for row in rows}}


@mutant(ZOMBIE)
def seen_before_its_commit_beside_another(run: RunData) -> Expected:
    """The same, and among these records stands one of an earlier transaction, sent twice: that one was committed."""
    rows, earlier = of_transaction(run, pick(run, nth=90))[:5], pick(run, nth=30)
    copy = run.insert_output(earlier, rows[2]["offset"])
    for row in (*rows, copy):
        run.seen(row)["at"] = run.invoke(rows[0])["t"] - 0.002
    return {"aborted-read": {place_of(row) for row in rows}, "duplicate": {place_of(earlier), place_of(copy)}}


@mutant(ZOMBIE)
def seen_as_soon_as_it_was_committed(run: RunData) -> Expected:
    """Harmless: the live observer's time of a record is rounded, and a little below that of the call of commit."""
    row = pick(run)
    run.seen(row)["at"] = run.invoke(row)["t"] - 0.0005
    return {}


@mutant(ZOMBIE, pipeline="produce")
def seen_at_once(run: RunData) -> Expected:
    """Harmless: without transactions a record is there to be seen before its batch is done."""
    row = pick(run)
    run.seen(row)["at"] = run.invoke(row)["t"] - 0.02
    return {}


@mutant(ZOMBIE)
def stood_before_its_commit(run: RunData) -> Expected:
    """Harmless: a worker stood before its call of commit for a fault, and went on; so did another, of another fault."""
    for number, row in enumerate((pick(run, nth=10), pick(run, nth=90))):
        stood = _stop_before_commit(run, row, fault=f"{number}-kill-worker")
        run.events.append({**stood, "event": "went-on"})
    return {}


@mutant(ZOMBIE)
def went_on_from_another_stop(run: RunData) -> Expected:
    """A worker went on from one stop before its commit, and was killed at the next one; the log shows a commit."""
    row = pick(run)
    run.events.remove(run.outcome(row))
    run.events.append({**_stop_before_commit(run, row, fault="0-hold-request/until"), "event": "went-on"})
    _stop_before_commit(run, row, fault="1-kill-worker")
    return {"aborted-read": {place_of(each) for each in of_transaction(run, row)}}


@mutant(ZOMBIE)
def stood_earlier(run: RunData) -> Expected:
    """Harmless: a worker stood where outputs were sent, and nobody wrote down that it went on from there."""
    _stop_before_commit(run, pick(run))["phase"] = "produced"
    return {}


@mutant(ABORTS, pipeline="fan-out-two-transactions")
def killed_before_its_second_commit(run: RunData) -> Expected:
    """Harmless: a worker with a commit for each topic was killed before the second one; both took effect."""
    row = pick(run, "stock")
    run.events.append({**run.invoke(row)})
    _stop_before_commit(run, row)
    return {}


@mutant(ZOMBIE, pipeline="produce")
def no_transactions(run: RunData) -> Expected:
    """Harmless: a pipeline without transactions never calls commit."""
    run.events = [each for each in run.events if each["event"] != "invoke"]
    return {}


def _stop_before_commit(run: RunData, row: Row, fault: str = "0-kill-worker") -> Row:
    """A worker told that it stood before the commit of the transaction that wrote this output; what it told."""
    told = {
        **run.invoke(row),
        "event": "at-phase",
        "phase": "before-commit",
        "count": row["transaction"],
        "fault": fault,
    }
    run.events.append(told)
    return told


def _part(run: RunData, row: Row) -> list[int]:
    part: list[int] = run.invoke(row)["outputs"][f"{run.prefix}{row['topic']}/{row['partition']}"]
    return part


def _spread(run: RunData, topic: str) -> Row:
    """An output of a transaction that wrote to two partitions of a topic."""
    for row in run.outputs:
        places = [place for place in run.invoke(row)["outputs"] if f"-{topic}/" in place]
        if row["topic"] == topic and len(places) > 1:
            return row
    raise LookupError("no transaction wrote to two partitions")
