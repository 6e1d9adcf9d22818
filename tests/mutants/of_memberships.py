"""Mutants in which outputs and committed offsets are in other transactions than those that were acknowledged."""

from onceproof.verifiers.evidence.tables import TRANSACTION
from tests.mutants.catalogue import (
    ABORTS,
    AGAIN,
    OFFSETS,
    TWICE,
    ZOMBIE,
    Expected,
    commit,
    each_of,
    final,
    forget,
    info_without_outputs,
    lose,
    mutant,
    of_transaction,
    pick,
    place_of,
    positions_of,
    resent,
    tell,
    turns,
)
from tests.mutants.of_coordinators import at, markers, renumber
from tests.mutants.of_positions import of_one_worker
from tests.packing import Place
from tests.rundata import Row, RunData, worker_of

_COMMITTER, _KILLED = 1000, 1  # producer ids of the run `aborts`: of worker 0, and of worker 1
_EPOCH = 2  # of worker 1's producer, when it had been killed


# Commits that were acknowledged


@mutant(ZOMBIE)
def two_commits_in_one_transaction(run: RunData) -> Expected:
    """A worker was told that two commits had succeeded, and one decision ended the outputs of both."""
    row = next(row for row in each_of(run, "output", 1)[40:] if len(run.invoke(row)["outputs"]) > 1)
    manifest, rows = run.invoke(row), [each for each in of_transaction(run, row) if each["partition"] == 1]
    for each in [*rows, *(one for one in positions_of(run, row) if one["partition"] == 1)]:
        each["transaction"] = AGAIN
    divide(run, manifest, 1)
    return {"torn-transaction": {("output", 1, min(each["offset"] for each in rows))}}


@mutant(ABORTS)
def acknowledged_and_vanished(run: RunData) -> Expected:
    """A worker was told that a commit had succeeded; its outputs and its positions were aborted, and a later
    transaction did all of it again."""
    manifest = run.invoke(final(run, "payment")[0])
    for each in info_without_outputs(run, "payment"):
        each["fate"] = "aborted"
    run.outcome_of(manifest)["type"] = "ok"
    return {"torn-transaction": {_first_payment(manifest)}}


def _first_payment(manifest: Row) -> Place:
    """The first payment of a transaction, in its first partition."""
    place = min(place for place in manifest["outputs"] if "-payment/" in place)
    return "payment", int(place.rpartition("/")[2]), manifest["outputs"][place][1]


@mutant(ABORTS)
def acknowledged_and_vanished_behind_a_lost_input(run: RunData) -> Expected:
    """The same, and an input that an earlier transaction read from the same partition has no output."""
    manifest = run.invoke(final(run, "payment")[0])
    acknowledged_and_vanished(run)
    partition, (first, _) = max(manifest["sources"].items(), key=lambda each: int(each[1][0]))
    row = next(each for each in run.outputs if each["topic"] == "payment" and _read_before(each, int(partition), first))
    return {**lose(run, row), "torn-transaction": {_first_payment(manifest)}}


@mutant(ABORTS)
def acknowledged_and_vanished_with_a_lost_input(run: RunData) -> Expected:
    """The same, and one of its inputs has no output: what vanished is lost, which is one cause and one class."""
    manifest = run.invoke(final(run, "payment")[0])
    acknowledged_and_vanished(run)
    row = next(each for each in run.outputs if each["topic"] == "payment" and _read_by(manifest, each))
    return lose(run, row)


@mutant(ABORTS)
def acknowledged_and_vanished_with_an_input_done_twice(run: RunData) -> Expected:
    """The same, and one of its inputs has two outputs since."""
    manifest = run.invoke(final(run, "payment")[0])
    acknowledged_and_vanished(run)
    row = next(each for each in run.outputs if each["topic"] == "payment" and _read_by(manifest, each))
    places = {place_of(row), place_of(resent(run, row))}
    return {"torn-transaction": {_first_payment(manifest)}, "duplicate": places}


def _read_by(manifest: Row, row: Row) -> bool:
    """Whether a transaction read the input of an output."""
    first, after = manifest["sources"].get(str(row["source_partition"]), (0, 0))
    return bool(first <= row["source_offset"] < after)


def _read_before(row: Row, partition: int, offset: int) -> bool:
    return bool(row["source_partition"] == partition and row["source_offset"] < offset)


def same_transaction(one: Row, other: Row) -> bool:
    """Whether two events are of one transaction."""
    return all(one.get(key) == other.get(key) for key in ("source", "incarnation", "transaction"))


def positions_told(run: RunData, manifest: Row) -> list[Row]:
    """The positions that the transaction of a manifest committed."""
    told = worker_of(manifest), manifest["incarnation"], manifest["transaction"]
    return [each for each in run.commits if tuple(each[key] for key in TRANSACTION) == told]


def divide(run: RunData, manifest: Row, partition: int) -> None:
    """Let the history have two transactions instead of one: the second has what was read of this partition."""
    own = {place: span for place, span in manifest["outputs"].items() if place.endswith(f"/{partition}")}
    told = [
        each
        for each in run.events
        if each["event"] in ("begin", "invoke", "outcome") and same_transaction(each, manifest)
    ]
    place = max(map(run.events.index, told)) + 1
    more = [dict(each) for each in told]
    for each in more:
        each["transaction"] = AGAIN
        if "sources" in each:
            each["sources"] = {str(partition): each["sources"][str(partition)]}
        if "outputs" in each:
            each["outputs"] = own
    run.events[place:place] = more
    for each in told:
        if "sources" in each:
            each["sources"] = {key: span for key, span in each["sources"].items() if key != str(partition)}
        if "outputs" in each:
            each["outputs"] = {key: span for key, span in each["outputs"].items() if key not in own}


# Outputs and positions in other transactions


@mutant(ZOMBIE)
def position_in_the_next_transaction_of_its_producer(run: RunData) -> Expected:
    """The positions of a transaction were committed in the next transaction of the same producer."""
    position = next(each for each in turns(run, 0)[5:] if movable(run, each))
    return {"unprotected": into_the_next_transaction(run, position)}


@mutant(ABORTS)
def outputs_in_the_next_transaction_of_their_producer(run: RunData) -> Expected:
    """What a transaction wrote to one partition stands in the next transaction of the same producer; its other outputs
    and its positions are in its own."""
    return {"unprotected": _outputs_into_the_next(run, "stock")}


@mutant(ZOMBIE, pipeline="tests/mutants/apart.py:STEPS")
def outputs_in_the_next_step_of_their_producer(run: RunData) -> Expected:
    """Harmless: the same, of a pipeline that does not claim that offsets are in the transaction of their outputs."""
    _outputs_into_the_next(run, "output")
    return {}


def _outputs_into_the_next(run: RunData, topic: str) -> set[Place]:
    """Move what a transaction wrote to partition 0 of a topic behind its marker; returns where it stands then."""
    batch = next(
        each
        for each in run.log(topic, 0)
        if each["first"] > 100
        and each["fate"] == "visible"
        and each["marker"] == each["last"] + 1
        and len(span_of(run, topic, 0, each)) == 1
        and len(run.invoke(_first_in(run, topic, each))["outputs"]) > 2
    )
    first, marker = batch["first"], batch["marker"]
    following = next(each for each in markers(run, topic, 0, batch["producer_id"]) if each > marker)
    rows = [row for row in each_of(run, topic, 0) if first <= row["offset"] <= batch["last"]]
    seen = [run.seen(row) for row in rows]
    for each in (*rows, *seen):
        each["offset"] += 1
    [part] = [each for each in run.parts(topic, 0) if each[1] == first]
    part[1:] = [first + 1, part[2] + 1]
    for each in [*at(run, topic, 0, first), *at(run, topic, 0, marker)]:
        if each["control"]:
            each["first"] = each["last"] = first
        else:
            each |= {"first": first + 1, "last": each["last"] + 1, "marker": following}
    return set(map(place_of, rows))


@mutant(ABORTS)
def outputs_in_the_transaction_of_another_producer(run: RunData) -> Expected:
    """What a transaction wrote to one partition stands in a transaction of another worker's producer; its other outputs
    and its positions are in its own."""
    batch = next(
        each
        for each in run.log("stock", 2)
        if each["producer_id"] == _COMMITTER
        and each["fate"] == "visible"
        and len(run.invoke(_first_in(run, "stock", each))["outputs"]) > 2
    )
    following = next(each for each in markers(run, "stock", 2, _KILLED) if each > batch["last"])
    for each in at(run, "stock", 2, batch["first"]):
        each |= {"producer_id": _KILLED, "producer_epoch": _EPOCH, "marker": following}
    renumber(run.log("stock", 2))
    rows = [row for row in each_of(run, "stock", 2) if batch["first"] <= row["offset"] <= batch["last"]]
    return {"unprotected": set(map(place_of, rows))}


@mutant(ABORTS)
def everything_in_no_transaction(run: RunData) -> Expected:
    """All outputs and all positions are outside of any transaction, and nothing has broken yet."""
    visible = [each for each in run.batches if each["transactional"] and each["fate"] == "visible"]
    for each in (*visible, *(one for one in run.commits if one["fate"] == "visible")):
        each |= {"transactional": False, "marker": None}
        if each in run.commits or each["topic"] == OFFSETS:
            each |= {"producer_id": -1, "producer_epoch": -1}
    positions = {("input", each["partition"], each["position"]) for each in run.commits if each["fate"] == "visible"}
    return {"unprotected": positions | set(map(place_of, run.outputs))}


@mutant(ZOMBIE, pipeline="tests/mutants/apart.py:APART")
def outputs_apart_in_no_transaction(run: RunData) -> Expected:
    """A pipeline that claims transactions for its outputs only wrote a batch of them outside of any."""
    row = pick(run)
    there = at(run, "output", 0, row["offset"])
    for each in there:
        each |= {"transactional": False, "marker": None}
    for each in run.commits:
        each.update(dict.fromkeys(TRANSACTION))
    rows = [row for row in each_of(run, "output", 0) if there[0]["first"] <= row["offset"] <= there[0]["last"]]
    return {"unprotected": set(map(place_of, rows))}


@mutant(TWICE)
def two_of_each_in_no_transaction(run: RunData) -> Expected:
    """Inputs have two outputs each in a batch that is not transactional; the offset of another input is not known."""
    row = pick(run)
    there = at(run, "output", 0, row["offset"])
    rows = [row for row in each_of(run, "output", 0) if there[0]["first"] <= row["offset"] <= there[0]["last"]]
    for each in there:
        each |= {"transactional": False, "marker": None}
    mine = {each["number"] for each in rows}
    forget(run, next(each["number"] for each in run.outputs if each["number"] not in mine), acknowledged=True)
    return {"unprotected": set(map(place_of, rows))}


@mutant(ZOMBIE)
def position_in_two_steps(run: RunData) -> Expected:
    """Harmless: a transaction committed the position in its middle first, and then that at its end."""
    whole = turns(run, 0)[5]
    commit(run, [{**whole, "offset": whole["offset"] - 0.5, "position": whole["position"] - 3}])
    return {}


@mutant(ZOMBIE)
def position_gone_back_by_a_later_transaction(run: RunData) -> Expected:
    """A later transaction of a worker, which wrote nothing, committed the position before the last one; nobody went
    back to it, and the next transaction's position covers all."""
    first, second, _ = of_one_worker(run)
    _lower(run, first, second, after=second)
    return {"offset-divergence": {("input", 0, first["position"])}}


@mutant(ZOMBIE)
def position_gone_back_by_a_successor(run: RunData) -> Expected:
    """The first transaction of a partition's new owner, which wrote nothing, committed a position below that of its
    predecessor; it went on from the right one."""
    taken = turns(run, 0)
    place = next(n for n, each in enumerate(taken) if n > 1 and each["worker"] != taken[0]["worker"])
    _lower(run, taken[place - 2], taken[place], after=taken[place - 1])
    return {"offset-divergence": {("input", 0, taken[place - 2]["position"])}}


def _lower(run: RunData, low: Row, owner: Row, *, after: Row) -> None:
    """Behind a commit, let the member that has another one commit a lower position, in an empty transaction."""
    told = [dict(each) for each in run.events if each["event"] == "begin" and _told_by(each, owner)]
    added = {**owner, "position": low["position"], "offset": after["offset"] + 0.5, "transaction": AGAIN}
    commit(run, [added])
    tell(run, owner, sources={}, outputs={})
    run.events[-3] |= {"t": told[0]["t"], "at": told[0]["at"]}


def _told_by(event: Row, row: Row) -> bool:
    """Whether an event is of the transaction that wrote an output, or committed a position."""
    return (worker_of(event), event["incarnation"], event["transaction"]) == tuple(row[key] for key in TRANSACTION)


def movable(run: RunData, position: Row) -> bool:
    """Whether the marker of a position's transaction stands right behind its batch."""
    [batch] = [each for each in of_offsets(run, position["offset"]) if each["broker"] == "broker1"]
    return position["fate"] == "visible" and bool(batch["marker"] == batch["last"] + 1)


def of_offsets(run: RunData, offset: int) -> list[Row]:
    """The batch at an offset of the group's log, on each replica."""
    there = [each for each in run.batches if each["topic"] == OFFSETS]
    return [each for each in there if each["first"] <= offset <= each["last"]]


def into_the_next_transaction(run: RunData, position: Row) -> set[Place]:
    """Let the marker of a position's transaction stand before it, so that the next marker of its producer ends it."""
    moved = positions_of(run, position)
    first, marker = min(each["offset"] for each in moved), position["marker"]
    following = next(each for each in markers(run, OFFSETS, position["log"], position["producer_id"]) if each > marker)
    data, ending = of_offsets(run, first), of_offsets(run, marker)
    for each in ending:
        each["first"] = each["last"] = data[0]["first"]
    for each in data:
        each |= {"first": each["first"] + 1, "last": each["last"] + 1, "marker": following}
    for each in moved:
        each |= {"offset": each["offset"] + 1, "marker": following}
    return {("input", each["partition"], each["position"]) for each in moved}


def span_of(run: RunData, topic: str, partition: int, batch: Row) -> list[Row]:
    """The batches that the marker of this one ends, on its replica."""
    there = [each for each in run.log(topic, partition) if each["broker"] == batch["broker"]]
    return [each for each in there if each["marker"] == batch["marker"]]


def _first_in(run: RunData, topic: str, batch: Row) -> Row:
    """The output that a batch begins with."""
    return next(row for row in each_of(run, topic, batch["partition"]) if row["offset"] == batch["first"])
