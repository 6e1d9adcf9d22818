"""Mutants of the same causes as others, elsewhere: in the second service, in another partition, earlier in the log."""

from collections.abc import Iterable

from onceproof.verifiers.evidence.tables import TRANSACTION
from tests.mutants.catalogue import (
    ABORTS,
    AGAIN,
    BANK,
    CHAIN,
    DELETES,
    OFFSETS,
    TOTALS,
    TWICE,
    ZOMBIE,
    Expected,
    commit,
    each_of,
    final,
    forget,
    given_up,
    info_without_outputs,
    mutant,
    of_transaction,
    pick,
    place_of,
    positions_of,
    redone,
    tell,
    turns,
)
from tests.mutants.of_coordinators import at, decided, last_of_partition, markers, version_2
from tests.mutants.of_histories import _numbered
from tests.mutants.of_ledger import _stored_again
from tests.mutants.of_positions import _of_one_worker
from tests.mutants.of_resets import _deleted_behind, reset
from tests.mutants.of_zombies import _zombie_commits, assigned_back
from tests.packing import Place
from tests.rundata import Row, RunData, worker_of

_COMMITTER, _KILLED = 1000, 1  # producer ids of the run `aborts`: of worker 0, and of worker 1
_EPOCH = 2  # of worker 1's producer, when it had been killed


# The second service of a chain, and what the first one wrote


def _turns_between(run: RunData, partition: int) -> list[Row]:
    """The positions that the second service committed on a partition of the topic between, in their order."""
    mine = [each for each in run.other_commits if each["partition"] == partition]
    return sorted(mine, key=lambda each: int(each["offset"]))


def _made_between(run: RunData, partition: int) -> list[Row]:
    """The outputs that were made of a partition of the topic between, in its order."""
    mine = [row for row in run.outputs if row["intermediate_partition"] == partition]
    return sorted(mine, key=lambda row: int(row["intermediate_offset"]))


def _shown_between(run: RunData, partition: int) -> Row:
    """The position that the second service's group shows on a partition of the topic between."""
    return next(each for each in run.other_positions if each["partition"] == partition)


@mutant(CHAIN)
def position_one_back_of_the_second_service(run: RunData) -> Expected:
    """The committed position of the second service is one below what the outputs show."""
    last = _made_between(run, 0)[-1]
    for each in _turns_between(run, 0):
        each["position"] = min(each["position"], last["intermediate_offset"])
    _shown_between(run, 0)["offset"] = last["intermediate_offset"]
    return {"offset-divergence": {place_of(last)}}


@mutant(CHAIN)
def position_never_committed_by_the_second_service(run: RunData) -> Expected:
    """The second service passed on a whole partition, and never committed a position there."""
    run.other_commits = [each for each in run.other_commits if each["partition"] != 1]
    run.other_positions = [each for each in run.other_positions if each["partition"] != 1]
    return {"offset-divergence": set(map(place_of, _made_between(run, 1)))}


@mutant(CHAIN)
def position_gone_back_in_the_second_service(run: RunData) -> Expected:
    """The request with a position of the second service came in once more, behind that of its next transaction; the
    one after that covers both."""
    first, second, *_ = _turns_between(run, 0)[5:]
    commit(run, [])
    run.other_commits.append({**first, "offset": second["offset"] + 1})
    return {"offset-divergence": {("middle", 0, first["position"])}}


@mutant(CHAIN)
def offset_ahead_in_the_second_service(run: RunData) -> Expected:
    """A transaction of the second service committed the offset of its next one as well."""
    early, late = _turns_between(run, 0)[5:7]
    rows = [row for row in _made_between(run, 0) if early["position"] <= row["intermediate_offset"] < late["position"]]
    early["position"] = late["position"]
    return {"offset-divergence": set(map(place_of, rows))}


@mutant(CHAIN)
def position_beyond_the_end_of_the_topic_between(run: RunData) -> Expected:
    """The committed position of the second service lies beyond the end of the topic between."""
    end: int = run.pinned("middle", 0)["end"]
    _turns_between(run, 0)[-1]["position"] = end + 1
    _shown_between(run, 0)["offset"] = end + 1
    return {"offset-divergence": {("middle", 0, end)}}


@mutant(CHAIN, unknown="the last one in its log is")
def another_position_of_the_second_service_is_shown(run: RunData) -> Expected:
    """Nothing is asserted: the second service's group shows another position than the last one in its log."""
    _shown_between(run, 0)["offset"] -= 5
    return {}


@mutant(CHAIN)
def records_of_the_first_service_in_no_transaction(run: RunData) -> Expected:
    """One batch that the first service wrote is not transactional; the offsets of its inputs are in the transaction."""
    data = [each for each in run.log("middle", 1) if each["control"] is None and each["fate"] == "visible"]
    first = sorted({each["first"] for each in data})[5]
    there = [each for each in data if each["first"] == first]
    for each in there:
        each |= {"transactional": False, "marker": None}
    return {"unprotected": {("middle", 1, offset) for offset in range(first, there[0]["last"] + 1)}}


@mutant(CHAIN)
def position_of_the_first_service_in_its_next_transaction(run: RunData) -> Expected:
    """A position of the first service was committed in the transaction after that of its records."""
    position = next(each for each in turns(run, 2)[9:] if _movable(run, each))
    return {"unprotected": _into_the_next_transaction(run, position)}


@mutant(CHAIN)
def acknowledged_by_the_first_service_and_vanished(run: RunData) -> Expected:
    """The first service was told that a commit had succeeded; its records were aborted, and it did them again."""
    batches = {
        each["partition"]: each
        for partition in range(3)
        for each in run.log("middle", partition)
        if each["fate"] == "aborted"
    }
    begun = next(
        each
        for place, each in enumerate(run.events)
        if each["event"] == "begin"
        and each["source"] == "worker-0"
        and not any(_same(each, other) for other in run.events[place + 1 :] if other["event"] == "outcome")
    )
    beside = next(each for each in run.events if each["event"] == "invoke" and each["source"] == "worker-0")
    sources, outputs = {}, {}
    for partition, batch in batches.items():
        count = batch["last"] - batch["first"] + 1
        before = [each for each in turns(run, partition) if each["incarnation"] == begun["incarnation"]]
        first = before[-1]["position"]
        sources[str(partition)] = [first, first + count]
        outputs[f"{run.prefix}middle/{partition}"] = [count, batch["first"], batch["last"]]
    told = {**beside, "transaction": begun["transaction"], "sources": sources, "outputs": outputs}
    place = run.events.index(begun) + 1
    run.events[place:place] = [{**told, "event": "invoke"}, {**told, "event": "outcome", "type": "ok"}]
    return {"torn-transaction": {("middle", min(batches), batches[min(batches)]["first"])}}


@mutant(CHAIN)
def two_commits_of_the_first_service_in_one_transaction(run: RunData) -> Expected:
    """The first service was told that two commits had succeeded, and one decision ended the records of both."""
    manifest = next(
        each
        for each in run.events[60:]
        if each["event"] == "invoke" and each["source"] == "worker-0" and len(each["outputs"]) == 3
    )
    _, first, _ = manifest["outputs"][f"{run.prefix}middle/2"]
    for each in _positions_told(run, manifest):
        if each["partition"] == 2:
            each["transaction"] = AGAIN
    _divide(run, manifest, 2)
    return {"torn-transaction": {("middle", 2, first)}}


# Commits that were acknowledged


@mutant(ZOMBIE)
def two_commits_in_one_transaction(run: RunData) -> Expected:
    """A worker was told that two commits had succeeded, and one decision ended the outputs of both."""
    row = next(row for row in each_of(run, "output", 1)[40:] if len(run.invoke(row)["outputs"]) > 1)
    manifest, rows = run.invoke(row), [each for each in of_transaction(run, row) if each["partition"] == 1]
    for each in [*rows, *(one for one in positions_of(run, row) if one["partition"] == 1)]:
        each["transaction"] = AGAIN
    _divide(run, manifest, 1)
    return {"torn-transaction": {("output", 1, min(each["offset"] for each in rows))}}


@mutant(ABORTS)
def acknowledged_and_vanished(run: RunData) -> Expected:
    """A worker was told that a commit had succeeded; its outputs and its positions were aborted, and a later
    transaction did all of it again."""
    manifest = run.invoke(final(run, "payment")[0])
    for each in info_without_outputs(run, "payment"):
        each["fate"] = "aborted"
    run.outcome_of(manifest)["type"] = "ok"
    place = min(place for place in manifest["outputs"] if "-payment/" in place)
    return {"torn-transaction": {("payment", int(place.rpartition("/")[2]), manifest["outputs"][place][1])}}


def _same(one: Row, other: Row) -> bool:
    """Whether two events are of one transaction."""
    return all(one.get(key) == other.get(key) for key in ("source", "incarnation", "transaction"))


def _positions_told(run: RunData, manifest: Row) -> list[Row]:
    """The positions that the transaction of a manifest committed."""
    told = worker_of(manifest), manifest["incarnation"], manifest["transaction"]
    return [each for each in run.commits if tuple(each[key] for key in TRANSACTION) == told]


def _divide(run: RunData, manifest: Row, partition: int) -> None:
    """Let the history have two transactions instead of one: the second has what was read of this partition."""
    own = {place: span for place, span in manifest["outputs"].items() if place.endswith(f"/{partition}")}
    told = [each for each in run.events if each["event"] in ("begin", "invoke", "outcome") and _same(each, manifest)]
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
    position = next(each for each in turns(run, 0)[5:] if _movable(run, each))
    return {"unprotected": _into_the_next_transaction(run, position)}


@mutant(ABORTS)
def outputs_in_the_next_transaction_of_their_producer(run: RunData) -> Expected:
    """What a transaction wrote to one partition stands in the next transaction of the same producer; its other outputs
    and its positions are in its own."""
    batch = next(
        each
        for each in run.log("stock", 0)
        if each["first"] > 100
        and each["fate"] == "visible"
        and each["marker"] == each["last"] + 1
        and len(_span(run, "stock", 0, each)) == 1
        and len(run.invoke(_first_in(run, "stock", each))["outputs"]) > 2
    )
    first, marker = batch["first"], batch["marker"]
    following = next(each for each in markers(run, "stock", 0, batch["producer_id"]) if each > marker)
    rows = [row for row in each_of(run, "stock", 0) if first <= row["offset"] <= batch["last"]]
    seen = [run.seen(row) for row in rows]
    for each in (*rows, *seen):
        each["offset"] += 1
    [part] = [each for each in run.parts("stock", 0) if each[1] == first]
    part[1:] = [first + 1, part[2] + 1]
    for each in [*at(run, "stock", 0, first), *at(run, "stock", 0, marker)]:
        if each["control"]:
            each["first"] = each["last"] = first
        else:
            each |= {"first": first + 1, "last": each["last"] + 1, "marker": following}
    return {"unprotected": set(map(place_of, rows))}


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
    _number_again(run, "stock", 2)
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
    first, second, _ = _of_one_worker(run)
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


def _movable(run: RunData, position: Row) -> bool:
    """Whether the marker of a position's transaction stands right behind its batch."""
    [batch] = [each for each in _of_offsets(run, position["offset"]) if each["broker"] == "broker1"]
    return position["fate"] == "visible" and bool(batch["marker"] == batch["last"] + 1)


def _of_offsets(run: RunData, offset: int) -> list[Row]:
    """The batch at an offset of the group's log, on each replica."""
    there = [each for each in run.batches if each["topic"] == OFFSETS]
    return [each for each in there if each["first"] <= offset <= each["last"]]


def _into_the_next_transaction(run: RunData, position: Row) -> set[Place]:
    """Let the marker of a position's transaction stand before it, so that the next marker of its producer ends it."""
    moved = positions_of(run, position)
    first, marker = min(each["offset"] for each in moved), position["marker"]
    following = next(each for each in markers(run, OFFSETS, position["log"], position["producer_id"]) if each > marker)
    data, ending = _of_offsets(run, first), _of_offsets(run, marker)
    for each in ending:
        each["first"] = each["last"] = data[0]["first"]
    for each in data:
        each |= {"first": each["first"] + 1, "last": each["last"] + 1, "marker": following}
    for each in moved:
        each |= {"offset": each["offset"] + 1, "marker": following}
    return {("input", each["partition"], each["position"]) for each in moved}


def _span(run: RunData, topic: str, partition: int, batch: Row) -> list[Row]:
    """The batches that the marker of this one ends, on its replica."""
    there = [each for each in run.log(topic, partition) if each["broker"] == batch["broker"]]
    return [each for each in there if each["marker"] == batch["marker"]]


def _first_in(run: RunData, topic: str, batch: Row) -> Row:
    """The output that a batch begins with."""
    return next(row for row in each_of(run, topic, batch["partition"]) if row["offset"] == batch["first"])


def _number_again(run: RunData, topic: str, partition: int) -> None:
    """Let the sequence numbers of each producer epoch in a partition be contiguous."""
    ends: dict[tuple[object, ...], int] = {}
    for batch in sorted(run.log(topic, partition), key=lambda each: int(each["first"])):
        if batch["control"] is None:
            lane = batch["broker"], batch["producer_id"], batch["producer_epoch"]
            batch["sequence"] = ends.get(lane, 0)
            ends[lane] = batch["sequence"] + batch["last"] - batch["first"] + 1


# Markers and decisions


def _append_marker(run: RunData, topic: str, partition: int, like: Iterable[Row], **values: object) -> int:
    """Put a marker like another one at the end of a partition, on each replica; returns its offset."""
    end = run.pinned(topic, partition)
    offset: int = end["end"]
    name = run.prefix + topic
    run.batches += [
        {**each, "topic": name, "partition": partition, "first": offset, "last": offset, **values} for each in like
    ]
    end["end"] = end["high_watermark"] = offset + 1
    return offset


def _last_markers(run: RunData, topic: str, partition: int) -> list[Row]:
    """The last marker of the producer that wrote the end of a partition, on each replica."""
    _, marker = last_of_partition(run, topic, partition)
    return [each for each in at(run, topic, partition, marker) if each["control"]]


@mutant(ABORTS)
def marker_again_of_an_older_coordinator(run: RunData) -> Expected:
    """An older coordinator sent the marker of the last transaction once more, and the broker took it."""
    for each in run.log("stock", 0):
        if each["control"]:
            each["coordinator_epoch"] += 5
    offset = _append_marker(run, "stock", 0, _last_markers(run, "stock", 0), coordinator_epoch=4)
    return {"zombie-write": {("stock", 0, offset)}}


@mutant(ABORTS)
def marker_again_of_a_newer_coordinator(run: RunData) -> Expected:
    """Harmless: a coordinator that took over sent the marker of the last transaction once more."""
    _append_marker(run, "stock", 0, _last_markers(run, "stock", 0), coordinator_epoch=50)
    return {}


@mutant(ABORTS)
def marker_again_with_an_epoch_for_each_transaction(run: RunData) -> Expected:
    """Harmless: with transaction version 2, the coordinator sent the marker of the last transaction once more."""
    version_2(run)
    _append_marker(run, "stock", 0, _last_markers(run, "stock", 0))
    return {}


@mutant(ABORTS)
def marker_where_nothing_was_written(run: RunData) -> Expected:
    """Harmless: a transaction names a partition to which it wrote nothing, and its marker stands there."""
    like = [each for each in run.log("stock", 2) if each["control"] and each["producer_epoch"] == _EPOCH]
    last = [each for each in like if each["first"] == max(one["first"] for one in like)]
    _append_marker(run, "stock", 0, last)
    decided(run, _KILLED, f"{run.prefix}stock/2")[-1]["partitions"].append(f"{run.prefix}stock/0")
    return {}


@mutant(ABORTS)
def decision_of_a_partition_without_a_marker(run: RunData) -> Expected:
    """The coordinator's last decision names a partition to which its producer never wrote, and no marker is there."""
    decided(run, _KILLED, f"{run.prefix}stock/2")[-1]["partitions"].append(f"{run.prefix}stock/0")
    return {"hung-transaction": {("stock", 0, 0)}}


@mutant(ABORTS)
def decision_without_the_offsets(run: RunData) -> Expected:
    """The coordinator's decision does not name the group's log, in which the marker of its transaction stands."""
    decision = decided(run, _KILLED, f"{run.prefix}stock/2")[-1]
    [place] = [each for each in decision["partitions"] if each.startswith(OFFSETS)]
    decision["partitions"].remove(place)
    log = int(place.rpartition("/")[2])
    return {"torn-transaction": {(OFFSETS, log, markers(run, OFFSETS, log, _KILLED)[-1])}}


@mutant(ABORTS)
def last_decision_missing(run: RunData) -> Expected:
    """The coordinator decided nothing of a producer's last transaction, whose markers stand in all its partitions."""
    decision = decided(run, _KILLED, f"{run.prefix}stock/2")[-1]
    before = decided(run, _KILLED, f"{run.prefix}stock/2")[-2]
    name = decision["transactional_id"]
    run.states = [
        each for each in run.states if each["transactional_id"] != name or each["offset"] <= before["offset"] + 1
    ]
    places = set()
    for place in decision["partitions"]:
        topic, _, partition = place.removeprefix(run.prefix).rpartition("/")
        places.add((topic, int(partition), markers(run, topic, int(partition), _KILLED)[-1]))
    return {"torn-transaction": places}


@mutant(ABORTS)
def decision_to_abort_without_its_marker(run: RunData) -> Expected:
    """In the middle of the run, the coordinator decided to abort a transaction of one partition; no marker of it is
    there, and those of all other decisions are."""
    place = f"{run.prefix}stock/0"
    for each in run.states:
        each["offset"] *= 4
    decision = decided(run, _COMMITTER, place)[20]
    told = {**decision, "state": "PrepareAbort", "partitions": [place]}
    ended = min(
        each["offset"]
        for each in run.states
        if each["transactional_id"] == decision["transactional_id"] and each["offset"] > decision["offset"]
    )
    run.states += [
        {**told, "offset": ended + 1},
        {**told, "offset": ended + 2, "state": "CompleteAbort", "partitions": []},
    ]
    return {"hung-transaction": {("stock", 0, markers(run, "stock", 0, _COMMITTER)[-1] + 1)}}


@mutant(ABORTS)
def decision_missing_with_an_epoch_for_each_transaction(run: RunData) -> Expected:
    """With transaction version 2, the coordinator decided nothing of a transaction in the middle of the run."""
    version_2(run)
    decision = decided(run, _COMMITTER, f"{run.prefix}stock/0")[20]
    ended = min(
        (
            each
            for each in run.states
            if each["transactional_id"] == decision["transactional_id"] and each["offset"] > decision["offset"]
        ),
        key=lambda each: int(each["offset"]),
    )
    run.states = [each for each in run.states if each is not decision and each is not ended]
    places = set()
    for place in decision["partitions"]:
        name, _, partition = place.rpartition("/")
        [marker] = {
            each["first"]
            for each in run.batches
            if (each["topic"], each["partition"]) == (name, int(partition))
            and each["control"]
            and (each["producer_id"], each["producer_epoch"]) == (_COMMITTER, decision["producer_epoch"])
        }
        places.add((name.removeprefix(run.prefix), int(partition), marker))
    return {"torn-transaction": places}


@mutant(ABORTS)
def commit_marker_in_the_middle_of_the_run(run: RunData) -> Expected:
    """A commit marker that nobody decided stands in the middle of a transaction, and its producer went on. With one
    epoch the order decides: the producer's last marker there is one too many."""
    _doubly_ended(run)
    return {"torn-transaction": {("stock", 0, markers(run, "stock", 0, _COMMITTER)[-1])}}


@mutant(ABORTS)
def commit_marker_in_the_middle_with_an_epoch_for_each_transaction(run: RunData) -> Expected:
    """The same with transaction version 2: the epochs say which transaction has two markers, and its second half comes
    after a marker with a higher epoch."""
    version_2(run)
    middle, marker = _doubly_ended(run)
    return {"torn-transaction": {("stock", 0, marker)}, "zombie-write": {("stock", 0, middle + 1)}}


def _doubly_ended(run: RunData) -> tuple[int, int]:
    """Put a commit marker into a transaction in the middle of stock/0; returns its offset and that of the other one."""
    data = [each for each in run.log("stock", 0) if each["control"] is None and each["first"] > 200]
    return _halved(run, "stock", next(each for each in data if _divisible(run, each)))


@mutant(ABORTS)
def marker_again_in_the_middle_of_the_run(run: RunData) -> Expected:
    """Harmless: a coordinator sent a marker once more, before the next transaction of the producer began."""
    marker = markers(run, "stock", 0, _COMMITTER)[12]
    like = [each for each in at(run, "stock", 0, marker) if each["control"]]
    run._shift("stock", 0, marker + 1, 1)
    for each in like:
        each["last"] = marker
    run.batches += [{**each, "first": marker + 1, "last": marker + 1} for each in like]
    return {}


@mutant(ABORTS)
def batch_behind_its_marker(run: RunData) -> Expected:
    """A batch came in behind the marker of its transaction, and no coordinator knows of it (KAFKA-14561)."""
    batch, _ = last_of_partition(run, "stock", 0)
    end = run.pinned("stock", 0)
    late = {"first": end["end"], "last": end["end"], "records": 1, "marker": None, "fate": "open"}
    for each in at(run, "stock", 0, batch["first"]):
        sequence = each["sequence"] + each["last"] - each["first"] + 1
        run.batches.append({**each, **late, "sequence": sequence})
    end["high_watermark"] = end["end"] + 1
    return {"hung-transaction": {("stock", 0, end["end"])}}


@mutant(ABORTS)
def abort_marker_that_nobody_decided(run: RunData) -> Expected:
    """An abort marker stands in the middle of a producer's last transaction, whose own marker commits the rest."""
    for partition in range(3):
        batch, _ = last_of_partition(run, "stock", partition)
        if _divisible(run, batch):
            return {"torn-transaction": _half_aborted(run, "stock", batch)}
    raise LookupError("no last transaction with a batch of four records")


@mutant(ABORTS)
def abort_marker_before_an_aborted_transaction(run: RunData) -> Expected:
    """An abort marker that nobody decided stands in the middle of a transaction; a later transaction of the same
    producer was aborted as decided, and those between were committed."""
    aborts = [each["first"] for each in run.log("stock", 0) if each["control"] == "abort"]
    batch = next(
        each
        for each in sorted(run.log("stock", 0), key=lambda each: int(each["first"]))
        if each["control"] is None and each["last"] < min(aborts) and _divisible(run, each)
    )
    return {"torn-transaction": _half_aborted(run, "stock", batch)}


@mutant(ABORTS)
def abort_marker_for_a_decision_to_commit(run: RunData) -> Expected:
    """In the middle of the run, the marker of one partition aborts what its coordinator decided to commit."""
    batch = next(each for each in run.log("stock", 2) if each["producer_epoch"] == _EPOCH and _divisible(run, each))
    for each in at(run, "stock", 2, batch["marker"]):
        each["control"] = "abort"
    run.hide("stock", 2, batch["first"], batch["last"])
    return {"torn-transaction": {("stock", 2, batch["first"]), ("stock", 2, batch["marker"])}}


@mutant(ABORTS)
def marker_missing_in_one_partition(run: RunData) -> Expected:
    """In the middle of the run, a transaction has no marker in one partition; that of the next transaction ends what
    both of them wrote there."""
    _without_marker(run)
    return {"hung-transaction": {("stock", 2, markers(run, "stock", 2, _KILLED)[-1] + 1)}}


@mutant(ABORTS)
def marker_missing_with_an_epoch_for_each_transaction(run: RunData) -> Expected:
    """The same with transaction version 2: the epochs say which transaction has no marker."""
    version_2(run)
    first = _without_marker(run)
    return {
        "hung-transaction": {("stock", 2, markers(run, "stock", 2, _KILLED)[-1] + 1)},
        "zombie-write": {("stock", 2, first)},
    }


@mutant(ABORTS)
def producer_id_rotated(run: RunData) -> Expected:
    """Harmless: the coordinator gave a producer another id, with which it began at epoch 0 again."""
    for each in (*run.batches, *run.commits, *run.states):
        if (each["producer_id"], each["producer_epoch"]) == (_KILLED, _EPOCH) and not each.get("topic", "").endswith(
            "-input"
        ):
            each |= {"producer_id": 5_000, "producer_epoch": 0}
    return {}


@mutant(ABORTS)
def coordinator_epoch_below_that_for_another_producer(run: RunData) -> Expected:
    """Two producers have one coordinator. A marker of one is of an older coordinator epoch than a marker of the other
    that stands before it."""
    for each in run.batches:
        each["coordinator_epoch"] = None if each["control"] is None else 0
    [log, *_] = sorted({each["log"] for each in run.states})
    for each in run.states:
        each |= {"offset": each["offset"] + (0 if each["log"] == log else 5_000), "log": log}
    last = markers(run, "stock", 2, _COMMITTER)[-1]
    old, *later = [each for each in markers(run, "stock", 2, _KILLED) if each > last]
    for offset in (last, *later):
        for each in at(run, "stock", 2, offset):
            each["coordinator_epoch"] = 7
    return {"zombie-write": {("stock", 2, old)}}


def _divisible(run: RunData, batch: Row) -> bool:
    """Whether a batch is all of its span, with four records or more and its marker right behind it."""
    whole = len(_span(run, "stock", batch["partition"], batch)) == 1
    sized = batch["last"] - batch["first"] >= 3
    return whole and sized and batch["fate"] == "visible" and bool(batch["marker"] == batch["last"] + 1)


def _half_aborted(run: RunData, topic: str, batch: Row) -> set[Place]:
    """Put an abort marker into the middle of a batch; returns the places of what is torn: what it aborted, and it."""
    place, first = batch["partition"], batch["first"]
    middle, _ = _halved(run, topic, batch, "abort")
    run.hide(topic, place, first, middle - 1)
    return {(topic, place, first), (topic, place, middle)}


def _halved(run: RunData, topic: str, batch: Row, kind: str = "commit") -> tuple[int, int]:
    """Put a marker into the middle of a batch; returns its offset, and that of the marker behind the batch."""
    place, first, marker = batch["partition"], batch["first"], batch["marker"] + 1
    middle = (first + batch["last"]) // 2
    run._shift(topic, place, middle + 1, 1)
    for each in at(run, topic, place, first):
        [ending] = [one for one in at(run, topic, place, marker) if one["broker"] == each["broker"]]
        half = middle - each["first"] + 1
        rest = {**each, "first": middle + 2, "records": each["last"] - middle - 1}
        rest["sequence"] = each["sequence"] + half
        run.batches += [rest, {**ending, "first": middle + 1, "last": middle + 1, "control": kind}]
        each |= {"last": middle, "records": half, "marker": middle + 1}
    return middle + 1, marker


def _without_marker(run: RunData) -> int:
    """Take a marker in the middle of the run out of stock/2; returns the first offset of the span that has grown."""
    there = markers(run, "stock", 2, _KILLED)
    gone, following = there[len(there) // 2 : len(there) // 2 + 2]
    first: int = min(each["first"] for each in run.log("stock", 2) if each["marker"] == gone)
    run.batches = [each for each in run.batches if each not in at(run, "stock", 2, gone)]
    for each in run.log("stock", 2):
        each["marker"] = following if each["marker"] == gone else each["marker"]
    run._shift("stock", 2, gone + 1, -1)
    return first


# Zombies and their assignments


@mutant(ZOMBIE)
def zombie_assigned_again_afterwards(run: RunData) -> Expected:
    """The zombie's positions were committed after its successor's; the group gave it the partitions back later."""
    commits = _zombie_commits(run)
    told = given_up(run)
    late = max(each["t"] for each in run.events if each["event"] == "begin")
    place = next(n for n, each in enumerate(run.events) if each["event"] == "begin" and each["t"] == late)
    keys = {key: told[key] for key in ("source", "incarnation")}
    again = {"at": run.events[place]["at"], **keys, "event": "assigned", "n": 0, "t": late, "partitions": [0, 1]}
    run.events.insert(place, again)
    return {"zombie-write": {("input", each["partition"], each["position"]) for each in commits}}


@mutant(ZOMBIE, pipeline="copy-fixed")
def zombie_of_a_fixed_assignment(run: RunData) -> Expected:
    """Partitions are assigned by configuration. An earlier incarnation of a worker committed positions after its next
    incarnation had committed."""
    run.events = [each for each in run.events if each["event"] != "assigned"]
    told = given_up(run)
    added = []
    for partition, (_, after) in told["sources"].items():
        new = next(
            each
            for each in turns(run, int(partition))
            if each["worker"] == worker_of(told) and each["incarnation"] > told["incarnation"]
        )
        owner = {"incarnation": told["incarnation"], "transaction": told["transaction"]}
        added.append({**new, **owner, "offset": new["offset"] + 0.5, "position": after})
    commit(run, added)
    return {"zombie-write": {("input", each["partition"], each["position"]) for each in added}}


@mutant(ZOMBIE, unknown="assigned")
def one_member_said_nothing_of_its_assignments(run: RunData) -> Expected:
    """Nothing is asserted: one of two members never said which partitions it was assigned."""
    run.events = [each for each in run.events if each["event"] != "assigned" or each["source"] != "worker-0"]
    return {}


@mutant(ABORTS)
def position_of_an_older_epoch(run: RunData) -> Expected:
    """Positions were committed with an older epoch than the marker before them has: one cause, which two rules see."""
    last = max((each for each in run.commits if each["producer_epoch"] == _EPOCH), key=lambda each: int(each["offset"]))
    batch = _of_offsets(run, last["offset"])
    for each in (*batch, *positions_of(run, last)):
        each["producer_epoch"] = 0
    mine = {("input", each["partition"], each["position"]) for each in positions_of(run, last)}
    return {"zombie-write": mine | {(OFFSETS, last["log"], batch[0]["first"])}}


# Histories that do not tell all


@mutant(ZOMBIE, alone=True, unknown="1 events of worker-1.1 are missing")
def call_of_commit_lost_on_its_way(run: RunData) -> Expected:
    """Nothing is asserted: the line with which a worker told that it called commit was lost; by its number it was
    there."""
    manifest = run.invoke(next(row for row in run.outputs if row["worker"] == 1 and row["transaction"] == 40))
    _numbered(run)
    run.events.remove(next(each for each in run.events if each["event"] == "invoke" and _same(each, manifest)))
    return {}


@mutant(ZOMBIE, alone=True, unknown="1 events of worker-1.1 are missing")
def going_on_lost_on_its_way(run: RunData) -> Expected:
    """Nothing is asserted: a worker stood before a commit for a fault, and the line that it went on was lost."""
    manifest = run.invoke(next(row for row in run.outputs if row["worker"] == 1 and row["transaction"] == 40))
    place = run.events.index(manifest) + 1
    stood = {
        **{key: manifest[key] for key in ("at", "source", "n", "t", "incarnation", "transaction")},
        "event": "at-phase",
        "phase": "before-commit",
        "count": 40,
        "fault": "1-abort",
    }
    run.events[place:place] = [stood, {**stood, "event": "went-on"}]
    _numbered(run)
    del run.events[place + 1]
    return {}


@mutant(ZOMBIE, alone=True, unknown="1 events of worker-0.1 are missing")
def assignment_lost_on_its_way(run: RunData) -> Expected:
    """Nothing is asserted: the group gave a partition back to its first owner, which told so, and the line was lost."""
    before = [each for each in run.events if each["event"] == "assigned"]
    assigned_back(run)
    place = next(n for n, each in enumerate(run.events) if each["event"] == "assigned" and each not in before)
    _numbered(run)
    del run.events[place]
    return {}


@mutant(ZOMBIE, alone=True, unknown="the history is incomplete")
def last_line_of_a_worker_lost(run: RunData) -> Expected:
    """Nothing is asserted: the last line of a worker that ended by itself was lost, which told how its last transaction
    ended."""
    last = max(n for n, each in enumerate(run.events) if each["event"] == "outcome" and each["source"] == "worker-1")
    del run.events[last]
    return {}


# Logs that cannot be relied on


@mutant(ZOMBIE, unknown="below the high watermark")
def last_stable_offset_of_the_group_behind(run: RunData) -> Expected:
    """Nothing is asserted: the last stable offset of the group's log is below its high watermark."""
    next(each for each in run.internal if each["topic"] == OFFSETS)["end"] -= 10
    return {}


@mutant(ZOMBIE, unknown=OFFSETS)
def batch_of_the_group_damaged(run: RunData) -> Expected:
    """Nothing is asserted: the bytes of a batch of committed offsets do not fit its checksum."""
    leader = next(each["leader"] for each in run.internal if each["topic"] == OFFSETS)
    there = _of_offsets(run, turns(run, 0)[5]["offset"])
    next(each for each in there if each["broker"] == leader)["intact"] = False
    return {}


@mutant(CHAIN, unknown="middle")
def batch_damaged_on_every_replica(run: RunData) -> Expected:
    """Nothing is asserted: on all replicas alike, the bytes of a batch do not fit its checksum."""
    first = next(each["first"] for each in run.log("middle", 0) if each["first"] > 100 and each["control"] is None)
    for each in at(run, "middle", 0, first):
        each["intact"] = False
    return {}


@mutant(ZOMBIE)
def sequence_with_a_gap_beside_an_unread_output(run: RunData) -> Expected:
    """The sequence numbers of a producer leave some out in one partition, and the reader missed an output of another:
    that says nothing of the first."""
    run.outputs.remove(pick(run, partition=1))
    return {"lost": {_gap(run, 0)}}


@mutant(ABORTS)
def sequence_with_a_gap_beside_a_duplicate(run: RunData) -> Expected:
    """The sequence numbers of a producer leave some out in one partition, and an input has two outputs in another."""
    row = next(row for row in each_of(run, "stock", 1)[40:] if row["worker"] == 0)
    again = run.insert_output(row, row["offset"], counted=True)
    return {"lost": {_gap(run, 2, "stock")}, "duplicate": {place_of(row), place_of(again)}}


def _gap(run: RunData, partition: int, topic: str = "output") -> Place:
    """Let the sequence numbers of the last batch of a partition's producer leave three out."""
    there = [each for each in run.log(topic, partition) if each["fate"] == "visible"]
    last = max(
        (
            batch
            for batch in there
            if len({each["first"] for each in there if _lane_of(each) == _lane_of(batch)}) > 1
            and batch["first"] == max(each["first"] for each in there if _lane_of(each) == _lane_of(batch))
        ),
        key=lambda each: int(each["first"]),
    )
    for each in at(run, topic, partition, last["first"]):
        each["sequence"] += 3
    return topic, partition, last["first"]


def _lane_of(batch: Row) -> tuple[int, int]:
    return batch["producer_id"], batch["producer_epoch"]


# Totals


@mutant(TOTALS)
def sum_under_another_key(run: RunData) -> Expected:
    """One sum stands under the key of another; the state is right, and all later sums of both keys go on from it."""
    row = pick(run, "sums")
    other = next(each for each in each_of(run, "sums", 0) if each["grouping"] != row["grouping"])
    row |= {"grouping": other["grouping"], "digest": row["digest"] ^ 1}
    return {"corrupted": {place_of(row)}}


@mutant(TOTALS)
def last_total_of_the_changelog_wrong(run: RunData) -> Expected:
    """The last record of a key in the changelog has another total than its state, and nothing comes after it."""
    rows = sorted(each_of(run, "changelog", 1), key=lambda row: int(row["source_offset"]))
    rows[-1]["total"] += 3
    return {"wrong-aggregate": {place_of(rows[-1])}}


@mutant(TOTALS)
def state_lost_in_the_middle(run: RunData) -> Expected:
    """A worker began a key at nothing again; the sums after it go on from there."""
    row = pick(run, "sums", nth=200)
    mine = [each for each in each_of(run, "sums", 0) if each["grouping"] == row["grouping"]]
    later = sorted(
        (each for each in mine if each["source_offset"] >= row["source_offset"]),
        key=lambda each: int(each["source_offset"]),
    )
    before = max(
        (each for each in mine if each["source_offset"] < row["source_offset"]),
        key=lambda each: int(each["source_offset"]),
    )["total"]
    for each in later:
        each["total"] -= before
    return {"wrong-aggregate": {place_of(row)}}


@mutant(TOTALS)
def total_wrong_beside_an_unread_record_of_the_changelog(run: RunData) -> Expected:
    """A sum is wrong, and the reader missed a record of another key in the changelog: that says nothing of the sums."""
    row = sorted(each_of(run, "sums", 0), key=lambda row: int(row["source_offset"]))[-1]
    row["total"] += 1
    other = next(each for each in each_of(run, "changelog", 0) if each["grouping"] != row["grouping"])
    run.outputs.remove(other)
    return {"wrong-aggregate": {place_of(row)}}


@mutant(BANK)
def changelog_of_the_bank_unreadable(run: RunData) -> Expected:
    """A record of the bank's changelog has no balances."""
    row = pick(run, "balances")
    row["total"] = None
    return {"wrong-aggregate": {place_of(row)}}


# Resets and ledger mode


@mutant(DELETES)
def doubled_before_what_a_reset_read_again(run: RunData) -> Expected:
    """A consumer went back by three inputs, and five were done again: the reset explains only those three."""
    mark = _deleted_behind(run)
    reset(run, mark["position"], mark["low_watermark"] + 2)
    rows = [run.made_of(0, offset) for offset in range(mark["low_watermark"], mark["position"])]
    places = redone(run, rows)
    early = {row["number"] for row in rows[:2]}
    wrong = {place_of(row) for row in run.outputs if row["number"] in early}
    return {"reset-reprocess": places - wrong, "duplicate": wrong}


@mutant(ZOMBIE, "ledger", unknown="1 outputs name offsets of the input topic that the ledger does not have")
def ledger_mode_input_stored_twice_and_read_once(run: RunData) -> Expected:
    """Ledger mode, nothing is asserted: an input may stand in the log a second time, which the ledger does not know;
    one output came out, and names that one."""
    again = _stored_again(run)
    run.remove_output(run.made_of(2, again["offset"] - 1))
    return {}


@mutant(ZOMBIE, "ledger")
def ledger_mode_input_stored_twice_and_read_as_the_first(run: RunData) -> Expected:
    """Ledger mode, harmless: the same, and the one output names the offset that the ledger has."""
    again = _stored_again(run)
    run.remove_output(run.made_of(2, again["offset"]))
    return {}
