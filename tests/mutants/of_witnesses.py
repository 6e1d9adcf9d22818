"""Mutants of assignments, histories and logs that do not tell all, and of what follows for totals and resets."""

from tests.mutants.catalogue import (
    ABORTS,
    BANK,
    CHAIN,
    DELETES,
    OFFSETS,
    TOTALS,
    ZOMBIE,
    Expected,
    commit,
    each_of,
    given_up,
    mutant,
    pick,
    place_of,
    positions_of,
    redone,
    turns,
)
from tests.mutants.of_coordinators import at, coordinator_epoch_goes_back, decision_without_its_marker
from tests.mutants.of_histories import numbered
from tests.mutants.of_ledger import stored_again
from tests.mutants.of_logs import still_open
from tests.mutants.of_memberships import of_offsets, same_transaction
from tests.mutants.of_resets import deleted_behind, reset
from tests.mutants.of_zombies import assigned_back, zombie_commits
from tests.rundata import RunData, worker_of

_EPOCH = 2  # of worker 1's producer, when it had been killed


# Zombies and their assignments


@mutant(ZOMBIE)
def zombie_assigned_again_afterwards(run: RunData) -> Expected:
    """The zombie's positions were committed after its successor's; the group gave it the partitions back later."""
    commits = zombie_commits(run)
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


@mutant(ZOMBIE, unknown="committed offsets without having reported an assignment", alone=True)
def one_member_said_nothing_of_its_assignments(run: RunData) -> Expected:
    """Nothing is asserted: one of two members never said which partitions it was assigned."""
    run.events = [each for each in run.events if each["event"] != "assigned" or each["source"] != "worker-0"]
    return {}


@mutant(ABORTS)
def position_of_an_older_epoch(run: RunData) -> Expected:
    """Positions were committed with an older epoch than the marker before them has: one cause, which two rules see."""
    last = max((each for each in run.commits if each["producer_epoch"] == _EPOCH), key=lambda each: int(each["offset"]))
    batch = of_offsets(run, last["offset"])
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
    numbered(run)
    run.events.remove(
        next(each for each in run.events if each["event"] == "invoke" and same_transaction(each, manifest))
    )
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
    numbered(run)
    del run.events[place + 1]
    return {}


@mutant(ZOMBIE, alone=True, unknown="1 events of worker-0.1 are missing")
def assignment_lost_on_its_way(run: RunData) -> Expected:
    """Nothing is asserted: the group gave a partition back to its first owner, which told so, and the line was lost."""
    before = [each for each in run.events if each["event"] == "assigned"]
    assigned_back(run)
    place = next(n for n, each in enumerate(run.events) if each["event"] == "assigned" and each not in before)
    numbered(run)
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


@mutant(ZOMBIE, unknown="below the high watermark", alone=True)
def last_stable_offset_of_the_group_behind(run: RunData) -> Expected:
    """Nothing is asserted: the last stable offset of the group's log is below its high watermark."""
    next(each for each in run.internal if each["topic"] == OFFSETS)["end"] -= 10
    return {}


@mutant(ZOMBIE, unknown=OFFSETS)
def batch_of_the_group_damaged(run: RunData) -> Expected:
    """Nothing is asserted: the bytes of a batch of committed offsets do not fit its checksum."""
    leader = next(each["leader"] for each in run.internal if each["topic"] == OFFSETS)
    there = of_offsets(run, turns(run, 0)[5]["offset"])
    next(each for each in there if each["broker"] == leader)["intact"] = False
    return {}


@mutant(CHAIN, unknown="middle")
def batch_damaged_on_every_replica(run: RunData) -> Expected:
    """Nothing is asserted: on all replicas alike, the bytes of a batch do not fit its checksum."""
    first = next(each["first"] for each in run.log("middle", 0) if each["first"] > 100 and each["control"] is None)
    for each in at(run, "middle", 0, first):
        each["intact"] = False
    return {}


# Coordinators


@mutant(ABORTS, alone=True, unknown="transactions cannot be judged: compaction removed 20 records")
def decisions_compacted_away(run: RunData) -> Expected:
    """Nothing is asserted: compaction removed the first decisions from a coordinator's log."""
    log = run.states[0]["log"]
    mine = sorted((each for each in run.states if each["log"] == log), key=lambda each: int(each["offset"]))
    run.states = [each for each in run.states if each not in mine[:20]]
    run.compact("__transaction_state", 20, log)
    return {}


@mutant(ABORTS)
def decision_without_its_marker_and_the_brokers_know(run: RunData) -> Expected:
    """A decision has no marker in a partition, and the brokers say that a transaction is open there: one cause."""
    decision_without_its_marker(run)
    return {"hung-transaction": {still_open(run, "stock", 0)}}


@mutant(ABORTS)
def coordinator_epoch_goes_back_where_a_transaction_hangs(run: RunData) -> Expected:
    """A marker is of an older coordinator than the one before it, and the brokers say that a transaction is open in
    its partition: two causes."""
    return {**coordinator_epoch_goes_back(run), "hung-transaction": {still_open(run, "stock", 0)}}


# Totals


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
    mark = deleted_behind(run)
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
    again = stored_again(run)
    run.remove_output(run.made_of(2, again["offset"] - 1))
    return {}


@mutant(ZOMBIE, "ledger")
def ledger_mode_input_stored_twice_and_read_as_the_first(run: RunData) -> Expected:
    """Ledger mode, harmless: the same, and the one output names the offset that the ledger has."""
    again = stored_again(run)
    run.remove_output(run.made_of(2, again["offset"]))
    return {}
