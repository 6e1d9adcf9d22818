"""Mutants of positions: what a transaction committed of them, against what is visible of its outputs."""

import json

from onceproof.verifiers.evidence.tables import TRANSACTION
from tests.mutants.catalogue import (
    ABORTS,
    AGAIN,
    OF_ANOTHER,
    OFFSETS,
    TOTALS,
    ZOMBIE,
    Expected,
    commit,
    given_up,
    input_of,
    last_still_open,
    lose,
    mutant,
    of_transaction,
    pick,
    place_of,
    positions_of,
    redone,
    set_fate,
    tell,
    turns,
)
from tests.mutants.of_zombies import position_one_back
from tests.packing import Place
from tests.rundata import Row, RunData, worker_of


@mutant(ZOMBIE)
def position_aborted_outputs_committed(run: RunData) -> Expected:
    """A transaction's outputs were committed and its position aborted; the next one's position covers them."""
    row = pick(run)
    for each in positions_of(run, row):
        each["fate"] = "aborted"
    return {"offset-divergence": {place_of(each) for each in of_transaction(run, row)}}


@mutant(ABORTS)
def position_never_sent(run: RunData) -> Expected:
    """A transaction committed outputs of a partition and no position there; the next one's covers them."""
    row = pick(run, "stock")
    gone = [each for each in positions_of(run, row) if each["partition"] == row["source_partition"]]
    run.commits = [each for each in run.commits if each not in gone]
    return {
        "offset-divergence": {
            place_of(each) for each in of_transaction(run, row) if each["source_partition"] == row["source_partition"]
        }
    }


@mutant(ZOMBIE)
def last_position_below_those_before_it(run: RunData) -> Expected:
    """The last committed position of a partition is below earlier ones; outputs of several transactions are above."""
    *_, earlier, _, last = turns(run, 0)
    last["position"] = run.positions[0] = earlier["position"] - 1
    return {
        "offset-divergence": {
            place_of(row)
            for row in run.outputs
            if row["source_partition"] == 0 and row["source_offset"] >= last["position"]
        }
    }


@mutant(ABORTS)
def position_short_of_the_last(run: RunData) -> Expected:
    """A transaction's position is one too low for its last input; the next one's is right."""
    row = pick(run, "stock")
    [short] = [each for each in positions_of(run, row) if each["partition"] == row["source_partition"]]
    short["position"] -= 1
    return {
        "offset-divergence": {
            place_of(run.made_of(short["partition"], short["position"], topic)) for topic in ("stock", "payment")
        }
    }


@mutant(TOTALS)
def position_aborted_beside_an_unread_output(run: RunData) -> Expected:
    """Outputs committed, their position aborted; and the reader missed another output: that says nothing of these."""
    row = pick(run, "sums")
    for each in positions_of(run, row):
        each["fate"] = "aborted"
    run.outputs.remove(
        max((each for each in run.outputs if each["topic"] == "changelog"), key=lambda each: int(each["offset"]))
    )
    return {"offset-divergence": {place_of(each) for each in of_transaction(run, row)}}


@mutant(ABORTS)
def position_of_an_aborted_transaction(run: RunData) -> Expected:
    """A transaction was given up, and done again as another one; but its position was committed."""
    told = given_up(run)
    return {"offset-divergence": {("input", each["partition"], each["position"]) for each in _commit(run, told)}}


@mutant(ZOMBIE, unknown="committed offsets are in transactions that are open")
def position_still_open(run: RunData) -> Expected:
    """Nothing is asserted: the last transaction's outputs are committed, its marker is not yet with its positions."""
    last_still_open(run, 1)
    return {}


@mutant(ABORTS)
def position_of_a_killed_transaction_that_skips(run: RunData) -> Expected:
    """A worker was killed before it called commit; its outputs are aborted, and its position was committed: lost."""
    row = pick(run, "stock")
    places = _hide(run, row)
    run.events.remove(run.outcome(row))
    run.events.remove(run.invoke(row))
    return {"lost": places}


@mutant(ZOMBIE, unknown="committed offsets are in transactions that are open")
def position_still_open_in_the_middle(run: RunData) -> Expected:
    """Nothing is asserted: the same of an earlier transaction, behind which another member has gone on."""
    for each in positions_of(run, pick(run)):
        each["fate"] = "open"
    return {}


@mutant(ABORTS)
def position_of_an_aborted_transaction_aborted(run: RunData) -> Expected:
    """Harmless: a transaction was given up when it had sent its position, which was aborted with it."""
    for each in _commit(run, given_up(run)):
        each["fate"] = "aborted"
    return {}


@mutant(ZOMBIE)
def position_of_an_aborted_transaction_that_skips(run: RunData) -> Expected:
    """A transaction was given up, its outputs aborted; its position was committed, and nobody did it again: lost."""
    row = pick(run)
    places = _hide(run, row)
    run.outcome(row)["type"] = "fail"
    run.events.remove(run.invoke(row))
    return {"lost": places}


@mutant(ABORTS)
def position_of_an_aborted_transaction_beside_losses(run: RunData) -> Expected:
    """A transaction was given up and done again, its position committed; the inputs right before and behind its own,
    and one of another partition, were never put in stock: no excuse for the position."""
    told = given_up(run)
    commits = _commit(run, told)
    partition, (first, after) = max(told["sources"].items())
    rows = [run.made_of(int(partition), offset, "stock") for offset in (first - 1, after)]
    other = next(number for number in range(3) if str(number) not in told["sources"])
    rows.append(run.made_of(other, first, "stock"))
    for row in rows:
        run.remove_output(row)
    return {
        "lost": {input_of(row) for row in rows},
        "offset-divergence": {("input", each["partition"], each["position"]) for each in commits},
    }


@mutant(ZOMBIE)
def above_a_position_still_open(run: RunData) -> Expected:
    """The last transaction's marker is not yet with its positions; and what it has sent there is one too low."""
    position_still_open(run)
    last = turns(run, 1)[-1]
    last["position"] -= 1
    return {"offset-divergence": {place_of(run.made_of(1, last["position"]))}}


@mutant(ZOMBIE)
def position_in_an_aborted_transaction_of_another_producer(run: RunData) -> Expected:
    """A transaction's position was sent in a transaction of another producer, which was aborted; a later one covers
    it."""
    row = turns(run, 0)[5]
    run.decide(OF_ANOTHER, [f"{OFFSETS}/{row['log']}"], commit=False)
    row |= {**OF_ANOTHER, "fate": "aborted", "marker": None}
    made = [each for each in of_transaction(run, row) if each["source_partition"] == 0]
    return {"offset-divergence": set(map(place_of, made))}


@mutant(ZOMBIE)
def position_aborted_before_one_still_open(run: RunData) -> Expected:
    """The last transaction's marker is not yet with its positions; that of the one before was aborted, though its
    outputs were committed. Another transaction's position does not speak for them."""
    wrong, last = turns(run, 1)[-2:]
    set_fate(run, wrong, "aborted")
    set_fate(run, last, "open")
    outputs = of_transaction(run, run.made_of(1, wrong["position"] - 1))
    return {"offset-divergence": {place_of(each) for each in outputs}}


@mutant(ZOMBIE)
def position_of_an_empty_transaction(run: RunData) -> Expected:
    """Harmless: a transaction that had nothing to read committed the position as it was."""
    _empty(run, turns(run, 0)[-1])
    return {}


@mutant(ZOMBIE)
def position_told_again_behind_an_empty_transaction(run: RunData) -> Expected:
    """Harmless: the same, and the request with the position before it came in once more: it is no lower."""
    last = turns(run, 0)[-1]
    _empty(run, last)
    commit(run, [{**last, "offset": last["offset"] + 1.5}])
    return {}


@mutant(ZOMBIE)
def position_gone_back(run: RunData) -> Expected:
    """The request with a transaction's position came in once more, behind that of the worker's next transaction and
    before its marker: it is in that one."""
    first, second, _ = of_one_worker(run)
    commit(run, [{**first, "offset": second["offset"] + 0.5, "marker": second["marker"]}])
    return {"unprotected": {("input", first["partition"], first["position"])}}


@mutant(ZOMBIE)
def position_gone_back_within_what_a_transaction_wrote(run: RunData) -> Expected:
    """A transaction's position is two short of its last input. The next one committed a position that is lower still,
    and then its own: the last two outputs are not in the transaction of their offset."""
    _, first, second = of_one_worker(run, apart=6)
    end = first["position"]
    first["position"] = end - 2
    commit(run, [{**second, "offset": second["offset"] - 0.5, "position": end - 4}])
    late = {place_of(run.made_of(0, offset)) for offset in (end - 2, end - 1)}
    return {"offset-divergence": late | {("input", 0, end - 4)}}


@mutant(ZOMBIE)
def position_gone_back_beside_a_lost_input(run: RunData) -> Expected:
    """The same, and an input of another partition has no output, which says nothing of that position."""
    expected = position_gone_back_within_what_a_transaction_wrote(run)
    row = pick(run, partition=1)
    return {**expected, **lose(run, row)}


@mutant(ZOMBIE)
def position_gone_back_by_a_zombie(run: RunData) -> Expected:
    """The same of a member whose partition had been given to another, behind that one's first position: one cause."""
    for partition in sorted(run.positions):
        taken = turns(run, partition)
        new = next((n for n, each in enumerate(taken) if n > 1 and each["worker"] != taken[0]["worker"]), None)
        if new is not None:
            early = taken[new - 2]
            run.decide(OF_ANOTHER, [f"{OFFSETS}/{early['log']}"])
            commit(run, [{**early, **OF_ANOTHER, "offset": taken[new]["offset"] + 0.5}])
            return {"zombie-write": {("input", partition, early["position"])}}
    raise LookupError("no partition changed hands")


@mutant(ZOMBIE)
def position_told_again(run: RunData) -> Expected:
    """Harmless: the request with a transaction's position came in twice, before its marker."""
    first, *_ = of_one_worker(run)
    commit(run, [{**first, "offset": first["offset"] + 0.5}])
    return {}


@mutant(ZOMBIE)
def position_gone_back_to_do_it_again(run: RunData) -> Expected:
    """A later transaction did an earlier one again, and committed the position that it then had: duplicates are what
    it is."""
    first, second, _ = of_one_worker(run)
    again = redone(run, of_transaction(run, first))
    for each in run.commits:
        if each["transaction"] == AGAIN and each["partition"] == first["partition"]:
            each["offset"] = second["offset"] + 0.5
    commit(run, [])
    return {"duplicate": again}


@mutant(ZOMBIE, pipeline="tests/mutants/apart.py:APART")
def positions_apart(run: RunData) -> Expected:
    """Harmless: a pipeline that does not commit its positions in transactions does not say whose they are."""
    for each in run.commits:
        each.update(dict.fromkeys(TRANSACTION))
    return {}


@mutant(ZOMBIE, pipeline="tests/mutants/apart.py:APART")
def position_apart_gone_back(run: RunData) -> Expected:
    """Harmless: positions that are in no transaction, and one came in once more behind the next one."""
    position_gone_back(run)
    return {}


@mutant(ZOMBIE, pipeline="tests/mutants/apart.py:APART")
def position_apart_one_back(run: RunData) -> Expected:
    """The same pipeline, and the group's position is one below what the outputs show."""
    positions_apart(run)
    return position_one_back(run)


@mutant(ZOMBIE, unknown="the last one in its log is")
def position_shown_and_in_no_log(run: RunData) -> Expected:
    """Nothing is asserted: the group shows a committed offset of a partition, and its log has none."""
    run.commits = [each for each in run.commits if each["partition"] != 0]
    return {}


@mutant(ABORTS, alone=True, unknown="the group's log was compacted: 1 records of it are gone")
def position_compacted_away(run: RunData) -> Expected:
    """Nothing is asserted: the group's log was compacted, and a transaction's position is not in it any more."""
    run.commits.remove(turns(run, 0)[3])
    run.compact("__consumer_offsets", 1)
    return {}


@mutant(ZOMBIE, pipeline="tests/mutants/apart.py:APART")
def nobody_should_watch(run: RunData) -> Expected:
    """Harmless: there was no live observer, as the scenario says. (Positions were committed by nobody.)"""
    positions_apart(run)
    run.observed = []
    plan = json.loads(run.plan_json)
    plan["scenario"]["workload"]["observer"] = False
    run.plan_json = json.dumps(plan)
    return {}


def _empty(run: RunData, last: Row) -> None:
    """A transaction without inputs or outputs, which commits the position of the one before it again."""
    commit(run, [{**last, "offset": last["offset"] + 0.5, "transaction": AGAIN}])
    tell(run, last, sources={}, outputs={})


def of_one_worker(run: RunData, *, apart: int = 0) -> list[Row]:
    """Three positions of partition 0 that one incarnation of a worker committed one after the other; the second is at
    least so many inputs behind the first."""
    taken = turns(run, 0)
    for three in zip(taken, taken[1:], taken[2:], strict=False):
        first, second, _ = three
        alike = len({(each["worker"], each["incarnation"]) for each in three}) == 1
        if alike and second["position"] - first["position"] >= apart:
            return list(three)
    raise LookupError("nobody committed three times")


def _hide(run: RunData, row: Row) -> set[Place]:
    """Make all outputs of a transaction aborted; returns where their inputs are."""
    rows = of_transaction(run, row)
    for each in rows:
        run.hide(each["topic"], each["partition"], each["offset"], each["offset"])
    return {input_of(each) for each in rows}


def _commit(run: RunData, told: Row) -> list[Row]:
    """Commit positions of a transaction that was given up: each right behind the last one of the same member, so that
    no successor's lies between, and as high as that. Returns them."""
    owner = worker_of(told), told["incarnation"]
    added = []
    for partition in map(int, told["sources"]):
        last = [each for each in turns(run, partition) if (each["worker"], each["incarnation"]) == owner][-1]
        added.append({**last, "offset": last["offset"] + 0.5, "transaction": told["transaction"]})
    commit(run, added)
    return added
