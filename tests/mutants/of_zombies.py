"""Mutants of who may write: fenced producers and group members, their epochs, the positions that they commit."""

from collections import Counter

from onceproof.verifiers.evidence.tables import TRANSACTION
from tests.mutants.catalogue import (
    ABORTS,
    ZOMBIE,
    Expected,
    aborted,
    commit,
    each_of,
    given_up,
    move_position,
    mutant,
    place_of,
    same_transaction,
    swap_with_next,
    turns,
)
from tests.rundata import Row, RunData, worker_of


@mutant(ZOMBIE)
def fence_ignored(run: RunData) -> Expected:
    """The zombie's open transaction was committed when it came back, with outputs that its successor had written."""
    commits = zombie_commits(run)
    _show(run)
    return {"zombie-write": {("input", each["partition"], each["position"]) for each in commits}}


@mutant(ZOMBIE)
def fence_ignored_by_the_coordinator_of_the_group(run: RunData) -> Expected:
    """The zombie's transaction was aborted, and its positions were committed all the same, after its successor's."""
    return {"zombie-write": {("input", each["partition"], each["position"]) for each in zombie_commits(run)}}


@mutant(ZOMBIE)
def zombie_has_the_last_word(run: RunData) -> Expected:
    """The zombie's position is the last: outputs stand above it, and the zombie is why."""
    commits = zombie_commits(run)
    _show(run)
    last = max(int(each["offset"]) for each in run.commits)
    for step, each in enumerate(commits, 1):
        each["offset"] = last + step
        run.positions[each["partition"]] = each["position"]
    return {"zombie-write": {("input", each["partition"], each["position"]) for each in commits}}


@mutant(ZOMBIE)
def zombie_has_the_last_word_that_counts(run: RunData) -> Expected:
    """The same, and behind it a position of its successor that was aborted."""
    expected = zombie_has_the_last_word(run)
    _abort_a_position(run, 2)
    return expected


@mutant(ZOMBIE)
def position_aborted(run: RunData) -> Expected:
    """Harmless: the last positions in the log are the first owner's, and were aborted."""
    _abort_a_position(run, 0)
    return {}


@mutant(ZOMBIE)
def position_of_nobody(run: RunData) -> Expected:
    """Harmless: somebody committed the group's position again who is no worker, as an operator's tool does."""
    last = turns(run, 0)[-1]
    _commit_again(run, last, worker=None, incarnation=None, transaction=None)
    return {}


@mutant(ZOMBIE, unknown="no worker reported that the group assigned it partition 0")
def nobody_said_who_was_assigned(run: RunData) -> Expected:
    """Nothing is asserted: no worker said which partitions it was assigned."""
    run.events = [each for each in run.events if each["event"] != "assigned"]
    return {}


@mutant(ZOMBIE)
def assigned_back(run: RunData) -> Expected:
    """Harmless: the first owner commits again, since the group had given the partition back to it."""
    first, *_, last = turns(run, 0)
    told = [
        each
        for each in run.events
        if each["event"] in ("begin", "invoke", "outcome")
        and (worker_of(each), each["incarnation"], each["transaction"]) == tuple(last[key] for key in TRANSACTION)
    ]
    owner = {key: first[key] for key in ("worker", "incarnation")}
    for each in [row for row in (*run.outputs, *run.commits) if same_transaction(row, last)]:
        each.update(owner)
    for each in told:
        each.update(source=f"worker-{first['worker']}", incarnation=first["incarnation"])
    begun = run.events.index(told[0])
    run.events.insert(begun, {**told[0], "event": "assigned", "partitions": [0, 1]})
    del run.events[begun]["transaction"]
    return {}


@mutant(ZOMBIE)
def older_epoch_committed(run: RunData) -> Expected:
    """A batch of an epoch was committed after batches of a higher one of its producer."""
    late = _last_batch(run, 0)
    for batch in run.log("output", 0):
        if batch["first"] == late["first"]:
            batch["producer_epoch"] = 0
    return {"zombie-write": {("output", 0, late["first"])}}


@mutant(ZOMBIE)
def older_epoch_committed_in_disorder(run: RunData) -> Expected:
    """The same, and two records in it stand in the wrong order: one cause."""
    expected = older_epoch_committed(run)
    swap_with_next(run, next(row for row in run.outputs if place_of(row) in expected["zombie-write"]))
    return expected


@mutant(ABORTS)
def older_epoch_after_a_marker(run: RunData) -> Expected:
    """A batch was committed after a marker of a higher epoch of its producer, which its coordinator did not decide."""
    batch = _last_batch(run, 2, "stock")
    marker = max(
        (
            each
            for each in run.log("stock", 2)
            if each["control"] and each["first"] < batch["first"] and each["producer_id"] == batch["producer_id"]
        ),
        key=lambda each: int(each["first"]),
    )
    for each in run.log("stock", 2):
        if each["first"] == marker["first"]:
            each["producer_epoch"] = batch["producer_epoch"] + 1
    return {
        "zombie-write": {("stock", 2, batch["first"])},
        "torn-transaction": {("stock", 2, marker["first"])},
        "hung-transaction": {("stock", 2, run.pinned("stock", 2)["end"])},
    }


@mutant(ZOMBIE)
def older_epoch_aborted(run: RunData) -> Expected:
    """Harmless: a late batch of an old epoch came in and was aborted."""
    sent: Counter[str] = Counter()
    for each in aborted(run, 0):
        each["producer_epoch"], each["sequence"] = each["producer_epoch"] - 1, sent[each["broker"]]
        sent[each["broker"]] += each["last"] - each["first"] + 1
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


def _last_batch(run: RunData, partition: int, topic: str = "output") -> Row:
    """The last visible batch of the producer that has the highest epoch there."""
    data = [each for each in run.log(topic, partition) if each["fate"] == "visible"]
    return max(data, key=lambda each: (int(each["producer_epoch"]), int(each["first"])))


def _commit_again(run: RunData, commit: Row, **values: object) -> None:
    """A position once more, at the end of the log."""
    end = max(int(each["offset"]) for each in run.commits)
    run.commits.append({**commit, "offset": end + 1, **values})


def _abort_a_position(run: RunData, turn: int) -> None:
    """In each partition that changed hands, the n-th position once more, at the end of the log, aborted."""
    for partition in sorted({each["partition"] for each in run.commits}):
        _commit_again(run, turns(run, partition)[turn], fate="aborted")


def zombie_commits(run: RunData) -> list[Row]:
    """Positions of the zombie's transaction, put into the log right after its successor's first."""
    told = given_up(run)
    worker = worker_of(told)
    added = []
    for partition, (_, after) in ((int(p), span) for p, span in told["sources"].items()):
        others = [each for each in turns(run, partition) if each["worker"] != worker]
        successor = next(each for each in others if each["position"] > after)
        added.append(
            {
                **successor,
                "offset": successor["offset"] + 0.5,
                "position": after,
                "worker": worker,
                "incarnation": told["incarnation"],
                "transaction": told["transaction"],
            }
        )
    commit(run, added)
    return added


def _show(run: RunData) -> None:
    """Make the zombie's aborted records visible, as its transaction's: committed, with a manifest."""
    told = given_up(run)
    worker = worker_of(told)
    outputs = {}
    for partition, (first, after) in ((int(p), span) for p, span in told["sources"].items()):
        [batch, *_] = aborted(run, partition)
        for each in aborted(run, partition):
            each["fate"] = "visible"
        for step, source in enumerate(range(first, after)):
            row = run.made_of(partition, source)
            shown = {
                **row,
                "offset": batch["first"] + step,
                "worker": worker,
                "incarnation": told["incarnation"],
                "transaction": told["transaction"],
            }
            run.outputs.append(shown)
            run.observed.append({**run.seen(row), "offset": shown["offset"], "at": told["t"] + 0.02})
        outputs[f"{run.prefix}output/{partition}"] = [after - first, batch["first"], batch["last"]]
    told["type"] = "ok"
    run.events.insert(run.events.index(told), {**told, "event": "invoke", "outputs": outputs})
