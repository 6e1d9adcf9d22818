"""Mutants of transactions, producers and the group: torn, shown though aborted, a zombie's; positions moved."""

from tests.mutants.catalogue import (
    ABORTS,
    ZOMBIE,
    Expected,
    each_of,
    final,
    input_of,
    move_position,
    mutant,
    of_transaction,
    pick,
    place_of,
    redo,
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
    return {"duplicate": {place_of(each) for each in [*rows, *redo(run, rows)]}}


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
    rows = final(run, "payment")
    run.outcome(rows[0])["type"] = "info"
    redo(run, rows)
    for row in rows:
        part = _part(run, row)
        run.hide(row["topic"], row["partition"], part[1], part[2])
    return {}


@mutant(ZOMBIE)
def aborted_and_read(run: RunData) -> Expected:
    """Collect's reader shows one record of a transaction that the log has as aborted."""
    [batch, *_] = _aborted(run, 0)
    row = pick(run)
    run.outputs.append({**row, "offset": batch["first"] + 1})
    return {"aborted-read": {("output", 0, batch["first"] + 1)}}


@mutant(ZOMBIE)
def aborted_and_observed(run: RunData) -> Expected:
    """The live observer was shown one record of a transaction that was aborted."""
    [batch, *_] = _aborted(run, 1)
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
def fence_ignored(run: RunData) -> Expected:
    """The zombie's open transaction was committed when it came back, with outputs that its successor had written."""
    commits = _zombie_commits(run)
    _show(run)
    return {"zombie-write": {("input", each["partition"], each["position"]) for each in commits}}


@mutant(ZOMBIE)
def zombie_has_the_last_word(run: RunData) -> Expected:
    """The zombie's position is the last: outputs stand above it, and the zombie is why."""
    commits = _zombie_commits(run)
    _show(run)
    last = max(int(each["offset"]) for each in run.commits)
    for step, each in enumerate(commits, 1):
        each["offset"] = last + step
        run.positions[each["partition"]] = each["position"]
    return {"zombie-write": {("input", each["partition"], each["position"]) for each in commits}}


@mutant(ZOMBIE)
def assigned_back(run: RunData) -> Expected:
    """Harmless: the first owner commits again, since the group had given the partition back to it."""
    first = min(_turns(run, 0), key=lambda each: int(each["offset"]))
    last = max(_turns(run, 0), key=lambda each: int(each["offset"]))
    last.update({key: first[key] for key in ("worker", "incarnation")})
    told = next(e for e in run.events if e["event"] == "assigned" and e["source"] == f"worker-{first['worker']}"
                and e["incarnation"] == first["incarnation"])  # fmt: skip
    again = {**told, "at": 1e9, "t": 1e9, "partitions": [0]}
    run.events.insert(2, again)
    return {}


@mutant(ZOMBIE)
def older_epoch_committed(run: RunData) -> Expected:
    """A batch of an epoch was committed after batches of a higher one of its producer."""
    late = _last_batch(run, 0)
    for batch in run.log("output", 0):
        if batch["first"] == late["first"]:
            batch["producer_epoch"] = 0
    return {"zombie-write": {("output", 0, late["first"])}}


@mutant(ABORTS)
def older_epoch_after_a_marker(run: RunData) -> Expected:
    """A batch was committed after a marker of a higher epoch of its producer, which had no batch there."""
    batch = _last_batch(run, 2, "stock")
    marker = max((each for each in run.log("stock", 2) if each["control"] and each["first"] < batch["first"]
                  and each["producer_id"] == batch["producer_id"]), key=lambda each: int(each["first"]))  # fmt: skip
    for each in run.log("stock", 2):
        if each["first"] == marker["first"]:
            each["producer_epoch"] = batch["producer_epoch"] + 1
    return {"zombie-write": {("stock", 2, batch["first"])}}


@mutant(ZOMBIE)
def older_epoch_aborted(run: RunData) -> Expected:
    """Harmless: a late batch of an old epoch came in and was aborted."""
    batch = _aborted(run, 0)[0]
    for each in run.log("output", 0):
        if each["producer_id"] == batch["producer_id"] and each["fate"] != "aborted":
            each["producer_epoch"] = max(each["producer_epoch"], batch["producer_epoch"] + 1)
    return {}


@mutant(ZOMBIE)
def position_one_back(run: RunData) -> Expected:
    """The committed position is one below what the outputs show."""
    move_position(run, 1, -1)
    last = max(each_of(run, "output", 1), key=lambda row: int(row["source_offset"]))
    return {"offset-divergence": {place_of(last)}}


@mutant(ZOMBIE)
def position_one_ahead(run: RunData) -> Expected:
    """The committed position lies beyond the input's end."""
    move_position(run, 1, 1)
    return {"offset-divergence": {("input", 1, run.pinned("input", 1)["end"])}}


@mutant(ABORTS)
def position_never_committed(run: RunData) -> Expected:
    """A partition has outputs, and no position was ever committed."""
    run.commits = [each for each in run.commits if each["partition"] != 1]
    del run.positions[1]
    return {"offset-divergence": {place_of(row) for row in run.outputs if row["source_partition"] == 1}}


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


def _aborted(run: RunData, partition: int) -> list[Row]:
    return [each for each in run.log("output", partition) if each["fate"] == "aborted"]


def _last_batch(run: RunData, partition: int, topic: str = "output") -> Row:
    """The last visible batch of the producer that has the highest epoch there."""
    data = [each for each in run.log(topic, partition) if each["fate"] == "visible"]
    return max(data, key=lambda each: (int(each["producer_epoch"]), int(each["first"])))


def _turns(run: RunData, partition: int) -> list[Row]:
    return [each for each in run.commits if each["partition"] == partition]


def _zombie_outcome(run: RunData) -> Row:
    return next(e for e in run.events if e["event"] == "outcome" and e["type"] == "fail")


def _zombie_commits(run: RunData) -> list[Row]:
    """Positions of the zombie's transaction, put into the log right after its successor's first."""
    told = _zombie_outcome(run)
    worker = int(told["source"].removeprefix("worker-"))
    added = []
    for partition, (_, after) in ((int(p), span) for p, span in told["sources"].items()):
        others = [each for each in _turns(run, partition) if each["worker"] != worker]
        successor = next(each for each in others if each["position"] > after)
        added.append({**successor, "offset": successor["offset"] + 0.5, "position": after, "worker": worker,
                      "incarnation": told["incarnation"], "transaction": told["transaction"]})  # fmt: skip
    # Make room: the log's offsets are whole numbers.
    run.commits = sorted([*run.commits, *added], key=lambda each: float(each["offset"]))
    for offset, each in enumerate(run.commits):
        each["offset"] = offset
    return added


def _show(run: RunData) -> None:
    """Make the zombie's aborted records visible, as its transaction's: committed, with a manifest."""
    told = _zombie_outcome(run)
    worker = int(told["source"].removeprefix("worker-"))
    outputs = {}
    for partition, (first, after) in ((int(p), span) for p, span in told["sources"].items()):
        [batch, *_] = _aborted(run, partition)
        for each in _aborted(run, partition):
            each["fate"] = "visible"
        for step, source in enumerate(range(first, after)):
            row = next(each for each in run.outputs if (each["source_partition"], each["source_offset"]) ==
                       (partition, source))  # fmt: skip
            shown = {**row, "offset": batch["first"] + step, "worker": worker, "incarnation": told["incarnation"],
                     "transaction": told["transaction"]}  # fmt: skip
            run.outputs.append(shown)
            run.observed.append({**run.seen(row), "offset": shown["offset"]})
        outputs[f"{run.prefix}output/{partition}"] = [after - first, batch["first"], batch["last"]]
    told["type"] = "ok"
    run.events.insert(run.events.index(told), {**told, "event": "invoke", "outputs": outputs})
