"""Mutants of chains: the second service, and the records that the first one wrote to the intermediate topic."""

from tests.mutants.catalogue import (
    AGAIN,
    CHAIN,
    Expected,
    commit,
    final,
    info_without_outputs,
    lose,
    mutant,
    place_of,
    positions_of,
    turns,
)
from tests.mutants.of_coordinators import at, markers
from tests.mutants.of_memberships import (
    divide,
    into_the_next_transaction,
    movable,
    positions_told,
    same_transaction,
    span_of,
)
from tests.packing import Place
from tests.rundata import Row, RunData


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
    """The request with a position of the second service came in once more, behind that of its next transaction and
    before its marker: it is in that one."""
    first, second, *_ = _turns_between(run, 0)[5:]
    commit(run, [])
    run.other_commits.append({**first, "offset": second["offset"] + 1, "marker": second["marker"]})
    return {"unprotected": {("middle", 0, first["position"])}}


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
    position = next(each for each in turns(run, 2)[9:] if movable(run, each))
    return {"unprotected": into_the_next_transaction(run, position)}


@mutant(CHAIN)
def records_of_the_first_service_in_its_next_transaction(run: RunData) -> Expected:
    """The last two records of a transaction of the first service stand behind its marker, and so in the next one of the
    same producer; the positions of their inputs are in the first."""
    batch = next(
        each
        for each in run.log("middle", 0)
        if each["first"] > 40
        and each["fate"] == "visible"
        and each["marker"] == each["last"] + 1
        and each["records"] > 3
        and len(span_of(run, "middle", 0, each)) == 1
        and _fate_behind(run, each) == "visible"
    )
    first, last, marker = batch["first"], batch["last"], batch["marker"]
    following = next(each for each in markers(run, "middle", 0, batch["producer_id"]) if each > marker)
    [part] = [each for each in run.parts("middle", 0) if each[1] == first]
    part[2] += 1
    for row in _made_between(run, 0):
        row["intermediate_offset"] += row["intermediate_offset"] in (last - 1, last)
    for position in _turns_between(run, 0):
        position["position"] += position["position"] == last + 1
    for each in at(run, "middle", 0, marker):
        each["first"] = each["last"] = last - 1
    for each in at(run, "middle", 0, first):
        rest = {"first": last, "last": last + 1, "records": 2, "marker": following}
        run.batches.append({**each, **rest, "sequence": each["sequence"] + last - 1 - first})
        each |= {"last": last - 2, "records": last - 1 - first, "marker": last - 1}
    return {"offset-divergence": {("middle", 0, last), ("middle", 0, last + 1)}}


def _fate_behind(run: RunData, batch: Row) -> str:
    """What became of the next batch that a producer wrote to the same partition; empty if there is none."""
    later = [each for each in run.log("middle", batch["partition"]) if each["control"] is None]
    later = [each for each in later if each["first"] > batch["last"] and each["producer_id"] == batch["producer_id"]]
    return str(min(later, key=lambda each: int(each["first"]))["fate"]) if later else ""


@mutant(CHAIN)
def acknowledged_by_the_first_service_and_vanished(run: RunData) -> Expected:
    """The first service was told that a commit had succeeded; its records were aborted, and it did them again."""
    return {"torn-transaction": {_first_part(_vanished(run))}}


@mutant(CHAIN)
def acknowledged_by_the_first_service_and_vanished_before_a_lost_input(run: RunData) -> Expected:
    """The same, and an input that it read later from the same partition has no output."""
    manifest = _vanished(run)
    row = next(each for each in run.outputs if _read_later(each, manifest["sources"]))
    return {"torn-transaction": {_first_part(manifest)}, **lose(run, row)}


def _read_later(row: Row, sources: Row) -> bool:
    span = sources.get(str(row["source_partition"]))
    return span is not None and bool(row["source_offset"] >= span[1])


def _first_part(manifest: Row) -> Place:
    """The first record of a transaction of the first service, in its first partition."""
    place = min(manifest["outputs"])
    return "middle", int(place.rpartition("/")[2]), manifest["outputs"][place][1]


def _vanished(run: RunData) -> Row:
    """Let the first service be told that an aborted transaction was committed; returns its manifest."""
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
        and not any(same_transaction(each, other) for other in run.events[place + 1 :] if other["event"] == "outcome")
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
    return told


@mutant(CHAIN)
def two_commits_of_the_first_service_in_one_transaction(run: RunData) -> Expected:
    """The first service was told that two commits had succeeded, and one decision ended the records of both."""
    manifest = next(
        each
        for each in run.events[60:]
        if each["event"] == "invoke" and each["source"] == "worker-0" and len(each["outputs"]) == 3
    )
    _, first, _ = manifest["outputs"][f"{run.prefix}middle/2"]
    for each in positions_told(run, manifest):
        if each["partition"] == 2:
            each["transaction"] = AGAIN
    divide(run, manifest, 2)
    return {"torn-transaction": {("middle", 2, first)}}


@mutant(CHAIN)
def positions_of_the_first_service_missing(run: RunData) -> Expected:
    """An acknowledged transaction of the first service committed no position; those of later ones cover its inputs."""
    return {"offset-divergence": _without_positions(run, turns(run, 0)[5])}


@mutant(CHAIN)
def first_positions_of_the_first_service_missing(run: RunData) -> Expected:
    """The same of its first transaction, whose records have the same offsets in several partitions."""
    return {"offset-divergence": _without_positions(run, turns(run, 0)[0])}


def _without_positions(run: RunData, committed: Row) -> set[Place]:
    """Take away what a transaction of the first service committed of positions; returns the records that it wrote."""
    made = set()
    for each in positions_of(run, committed):
        earlier = (one["position"] for one in turns(run, each["partition"]) if one["offset"] < each["offset"])
        *_, before = 0, *earlier
        made |= {
            ("middle", row["intermediate_partition"], row["intermediate_offset"])
            for row in run.outputs
            if row["source_partition"] == each["partition"] and before <= row["source_offset"] < each["position"]
        }
        run.commits.remove(each)
    return made


@mutant(CHAIN)
def position_of_an_info_of_the_second_service_without_outputs(run: RunData) -> Expected:
    """The second service called commit and had no answer; the outputs were aborted and done again, and the position was
    committed."""
    return {"offset-divergence": _info_of_the_second_service(run)}


@mutant(CHAIN)
def lost_beside_an_info_of_the_second_service(run: RunData) -> Expected:
    """The same, and nothing was done again: what is lost says enough of the position."""
    rows = final(run, "output")
    run.outcome(rows[0])["type"] = "info"
    for row in rows:
        run.hide("output", row["partition"], row["offset"], row["offset"])
    return {"lost": {("input", row["source_partition"], row["source_offset"]) for row in rows}}


def _info_of_the_second_service(run: RunData) -> set[Place]:
    row = final(run, "output")[0]
    positions = [each for each in run.other_commits if same_transaction(each, row)]
    info_without_outputs(run, "output")
    return {("middle", each["partition"], each["position"]) for each in positions}
