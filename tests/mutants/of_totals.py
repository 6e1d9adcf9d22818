"""Mutants of totals: an update that a state missed, a total that is another, one that cannot be read."""

import struct
from collections import Counter

import xxhash

from onceproof.workloads.sums import amount
from tests.mutants.catalogue import (
    BANK,
    TOTALS,
    Expected,
    each_of,
    input_of,
    lose,
    move_position,
    mutant,
    pick,
    place_of,
)
from tests.rundata import Row, RunData


@mutant(TOTALS)
def update_missed(run: RunData) -> Expected:
    """The state that a total was made from misses an earlier update; all later totals of the key go on from there."""
    row, *later = _of_key(run, pick(run, "sums"))
    for each in [row, *later]:
        each["total"] -= 7
    return {"wrong-aggregate": {place_of(row)}}


@mutant(TOTALS)
def update_added_twice(run: RunData) -> Expected:
    """An aborted transaction's update stayed in the state, and was added again."""
    row, *later = _of_key(run, pick(run, "changelog", 1))
    for each in [row, *later]:
        each["total"] += 5
    return {"wrong-aggregate": {place_of(row)}}


@mutant(TOTALS)
def one_total_wrong(run: RunData) -> Expected:
    """One total is another than its state's: its own step is wrong, and the next one's."""
    row, following, *_ = _of_key(run, pick(run, "sums"))
    row["total"] += 1
    return {"wrong-aggregate": {place_of(row), place_of(following)}}


@mutant(TOTALS)
def total_unreadable(run: RunData) -> Expected:
    """One total cannot be read; the next one's step is not its own amount."""
    row, following, *_ = _of_key(run, pick(run, "sums"))
    row["total"] = None
    return {"wrong-aggregate": {place_of(row), place_of(following)}}


@mutant(TOTALS)
def first_total_wrong(run: RunData) -> Expected:
    """The first total of a key does not begin at nothing; those after it go on from there."""
    first = min(each_of(run, "sums", 2), key=lambda row: int(row["offset"]))
    for each in _of_key(run, first):
        each["total"] += 9
    return {"wrong-aggregate": {place_of(first)}}


@mutant(TOTALS)
def lost_from_the_state_too(run: RunData) -> Expected:
    """An input was skipped, on both topics and in the state: it is lost, and every step of a total is right."""
    number = pick(run, "sums")["number"]
    places = {input_of(run.output(number, "sums"))}
    for topic in ("sums", "changelog"):
        row, *later = _of_key(run, run.output(number, topic))
        for each in later:
            each["total"] -= amount(number)
        run.remove_output(row)
    return {"lost": places}


@mutant(TOTALS)
def doubled_in_the_state_too(run: RunData) -> Expected:
    """An input was taken in twice, in one transaction: it is a duplicate, and every step of a total is right."""
    row, *later = _of_key(run, pick(run, "sums"))
    again = run.insert_output({**row, "total": row["total"] + amount(row["number"])}, row["offset"], counted=True)
    for each in later:
        each["total"] += amount(row["number"])
    return {"duplicate": {place_of(row), place_of(again)}}


@mutant(TOTALS)
def observer_saw_another_total(run: RunData) -> Expected:
    """The live observer saw another record where a total stands that is right, and from which the next one goes on."""
    row = pick(run, "sums")
    run.seen(row)["digest"] ^= 1
    return {"inconsistent-read": {place_of(row)}}


@mutant(TOTALS)
def total_replaced_in_the_log(run: RunData) -> Expected:
    """The live observer saw another record where a total stands that does not follow; the next one of its key goes on
    from the one before."""
    row, *later = _of_key(run, pick(run, "sums"))
    run.seen(row)["digest"] ^= 1
    row["total"] += 1_000
    for each in later:
        each["total"] -= amount(row["number"])
    return {"inconsistent-read": {place_of(row)}}


@mutant(TOTALS)
def aborted_total_read(run: RunData) -> Expected:
    """Collect's reader shows a total of a transaction that was aborted; the next of its key does not go on from it."""
    batch = next(each for each in run.log("sums", 2) if each["fate"] == "aborted")
    row = max(
        (each for each in each_of(run, "sums", 2) if each["offset"] < batch["first"] and len(_of_key(run, each)) > 1),
        key=lambda each: int(each["offset"]),
    )
    run.outputs.append({**row, "offset": batch["first"], "total": row["total"] + 1_000})
    return {"aborted-read": {("sums", 2, batch["first"])}}


@mutant(TOTALS)
def update_missed_behind_another_finding(run: RunData) -> Expected:
    """The live observer saw another record where a total stands; a later total of that key misses an update."""
    row, _, following, *later = _of_key(run, pick(run, "sums"))
    run.seen(row)["digest"] ^= 1
    for each in [following, *later]:
        each["total"] -= 7
    return {"inconsistent-read": {place_of(row)}, "wrong-aggregate": {place_of(following)}}


def keep_in_step(run: RunData) -> None:
    """Let each record of the bank's changelog have the balances of its debit and its credit, as Spark hashes them."""
    of_number = {(row["topic"], row["number"]): row for row in run.outputs}
    for row in each_of_topic(run, "balances"):
        seed = 42
        for topic in ("debits", "credits"):
            other = of_number[topic, row["number"]]
            for part in (other["grouping"], other["total"]):
                seed = xxhash.xxh64_intdigest(struct.pack("<q", part), seed=seed)
        row["total"] = seed - (1 << 64) if seed >> 63 else seed


def each_of_topic(run: RunData, topic: str) -> list[Row]:
    return [row for row in run.outputs if row["topic"] == topic]


@mutant(BANK)
def changelog_not_in_step(run: RunData) -> Expected:
    """A record of the changelog has another balance than the debit of its transfer."""
    row = pick(run, "balances")
    row["total"] ^= 1
    return {"wrong-aggregate": {place_of(row)}}


@mutant(TOTALS)
def changelog_garbage(run: RunData) -> Expected:
    """A record of the changelog has no total, so a worker that restored its state from it would be wrong."""
    row, following, *_ = _of_key(run, pick(run, "changelog"))
    row["total"] = None
    return {"wrong-aggregate": {place_of(row), place_of(following)}}


@mutant(TOTALS)
def totals_under_one_key(run: RunData) -> Expected:
    """Harmful though each step is right: all sums of a partition go on under one key."""
    rows = sorted(
        (row for row in run.outputs if row["topic"] == "sums" and row["partition"] == 0),
        key=lambda row: int(row["source_offset"]),
    )
    key, total = rows[0]["grouping"], 0
    wrong = set()
    for row in rows:
        total += amount(row["number"])
        if row["grouping"] != key:
            wrong.add(place_of(row))
            row["digest"] ^= 1  # of the key and the input
        row.update(grouping=key, total=total)
    return {"corrupted": wrong}


def _under(row: Row, key: int) -> None:
    """Write a sum under another key."""
    row["grouping"] = key
    row["digest"] ^= 1  # of the key and the input


@mutant(TOTALS)
def sum_under_another_key(run: RunData) -> Expected:
    """One sum is written under another key: the totals after it of both keys are right, and there is one cause."""
    row, *later = _of_key(run, pick(run, "sums"))
    other = next(
        each
        for each in each_of(run, "sums", row["partition"])
        if each["grouping"] != row["grouping"] and each["source_offset"] > row["source_offset"]
    )
    assert later and any(each["source_offset"] > row["source_offset"] for each in _of_key(run, other))
    _under(row, other["grouping"])
    return {"corrupted": {place_of(row)}}


@mutant(TOTALS)
def two_sums_under_other_keys(run: RunData) -> Expected:
    """The same, for two sums of one partition and of different keys."""
    rows = sorted(each_of(run, "sums", 0), key=lambda each: int(each["source_offset"]))
    numbers = Counter(each["grouping"] for each in rows)
    one, other = [each for each in rows if numbers[each["grouping"]] > 1][20:120:99]
    for row in (one, other):
        _under(row, next(each["grouping"] for each in rows[::-1] if each["grouping"] != row["grouping"]))
    return {"corrupted": {place_of(one), place_of(other)}}


@mutant(TOTALS)
def sum_under_another_key_that_has_sums_before(run: RunData) -> Expected:
    """The same, and neither key's last total before it goes on to this one."""
    rows = sorted(each_of(run, "sums", 0), key=lambda each: int(each["source_offset"]))
    for row in rows[100:]:
        before = [each for each in rows if each["source_offset"] < row["source_offset"]]
        others = [each for each in before if each["grouping"] != row["grouping"]]
        if any(each["grouping"] == row["grouping"] for each in before) and others:
            _under(row, others[-1]["grouping"])
            return {"corrupted": {place_of(row)}}
    raise LookupError("no key has two sums")


@mutant(TOTALS)
def changelog_wrong_where_a_sum_is_under_another_key(run: RunData) -> Expected:
    """As above, and the changelog's total of the same input is wrong by itself."""
    corrupted = sum_under_another_key(run)
    [place] = corrupted["corrupted"]
    number = next(row["number"] for row in each_of_topic(run, "sums") if place_of(row) == place)
    row, *later = _of_key(run, run.output(number, "changelog"))
    for each in [row, *later]:
        each["total"] -= 7
    return {**corrupted, "wrong-aggregate": {place_of(row)}}


@mutant(TOTALS, unknown="sums/0: 405 visible in the log, the reader saw 404 records")
def total_unread_in_an_incomplete_partition(run: RunData) -> Expected:
    """Nothing is asserted: the reader missed a total, and the next one of its key continues from it."""
    run.outputs.remove(pick(run, "sums"))
    return {}


@mutant(BANK)
def balance_invented(run: RunData) -> Expected:
    """An account has more from some transfer on than it was ever paid; both topics go on from there."""
    row, *later = _of_account(run, pick(run, "credits"))
    for each in [row, *later]:
        each["total"] += 100
    keep_in_step(run)
    return {"wrong-aggregate": {place_of(row)}}


@mutant(BANK)
def debited_and_not_credited(run: RunData) -> Expected:
    """A transfer was taken from one account and never reached the other: its record is lost, and its balance right."""
    row, *later = _of_account(run, pick(run, "credits", 1))
    for each in later:
        each["total"] -= amount(row["number"])
    keep_in_step(run)
    return lose(run, row)


@mutant(BANK)
def credit_forgotten_by_the_next_debit(run: RunData) -> Expected:
    """A balance goes on from the one before a credit: what came in on the other topic is missed."""
    row, following = next(
        (one, other)
        for one in each_of(run, "credits", 0)
        if len(rest := _of_account(run, one)) > 2 and (other := rest[1])["topic"] == "debits"
    )
    for each in _of_account(run, following):
        each["total"] -= amount(row["number"])
    keep_in_step(run)
    return {"wrong-aggregate": {place_of(following)}}


@mutant(BANK)
def position_one_back_of_the_bank(run: RunData) -> Expected:
    """The committed position is one below what debits and credits show."""
    move_position(run, 0, -1)
    last = 0, run.positions[0]
    return {
        "offset-divergence": {
            place_of(row) for row in run.outputs if (row["source_partition"], row["source_offset"]) == last
        }
    }


def _of_key(run: RunData, row: Row, *topics: str) -> list[Row]:
    """This output and those of its key behind it, in its partition of its own topic, or of all of these topics."""
    rows = [
        each
        for each in run.outputs
        if each["topic"] in (topics or (row["topic"],))
        and (each["partition"], each["grouping"]) == (row["partition"], row["grouping"])
        and each["source_offset"] >= row["source_offset"]
    ]
    return sorted(rows, key=lambda each: int(each["source_offset"]))


def _of_account(run: RunData, row: Row) -> list[Row]:
    return _of_key(run, row, "debits", "credits")
