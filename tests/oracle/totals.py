"""Each total is the one before it of its key plus its own input's amount: wrong-aggregate.

A chain of totals is walked in the order of the inputs. `start` are the totals from which the next one may go on: one,
if nothing else is wrong; two, behind an output that another finding explains; none, behind one that cannot be read.
"""

from collections import defaultdict

from tests.oracle.case import Case, place_of
from tests.oracle.pipelines import hash_of
from tests.rundata import Row

_CHAINS = {"sums": {"sums": "sums", "changelog": "changelog"}, "bank": {"debits": "accounts", "credits": "accounts"}}
_STATES = {"bank": ("balances", ("debits", "credits"))}
Chain = tuple[str, int, int | None]


def judge(case: Case) -> None:
    chains = _CHAINS.get(case.pipeline.name)
    if chains is None:
        return
    keys = {row["number"]: row.get("grouping") for row in case.run.ledger}
    steps: dict[Chain, list[tuple[Row, bool]]] = defaultdict(list)  # with whether the row is only a visitor there
    for row in case.run.outputs:
        if row["topic"] in chains:
            chain = chains[row["topic"]], row["partition"]
            steps[*chain, row["grouping"]].append((row, False))
            own = keys.get(row["number"])
            if place_of(row) in case.bad and own != row["grouping"] and case.pipeline.name == "sums":
                steps[*chain, own].append((row, True))
    topics = {name: [topic for topic in chains if chains[topic] == name] for name in chains.values()}
    for (name, partition, _), rows in steps.items():
        if all(case.whole(topic, partition) for topic in topics[name]):
            _walk(case, rows)
    if case.pipeline.name in _STATES:
        _states(case, *_STATES[case.pipeline.name])


def amount(row: Row) -> int:
    moved: int = row["number"] % 100 + 1
    return -moved if row["topic"] == "debits" else moved


def _walk(case: Case, rows: list[tuple[Row, bool]]) -> None:
    start: set[int] = {0}
    for row, visitor in sorted(rows, key=lambda each: (_order(each[0]), int(each[0]["offset"]))):
        explained = place_of(row) in case.explained or place_of(row) in case.bad - case.found("duplicate")
        total = row["total"]
        if visitor:
            start |= {before + amount(row) for before in start}
        elif explained:
            start |= set() if total is None else {total}
        else:
            if total is None or total - amount(row) not in start:
                case.add("wrong-aggregate", *place_of(row))
            start = set() if total is None else {total}


def _order(row: Row) -> int:
    return -1 if row["source_offset"] is None else int(row["source_offset"])


def _states(case: Case, topic: str, of: tuple[str, ...]) -> None:
    """A record of the changelog holds the keys and totals of the other outputs of its input."""
    stands = [row for row in case.run.outputs if place_of(row) not in case.explained | case.bad]
    made = {(row["topic"], row["number"]): row for row in stands}
    for row in (each for each in stands if each["topic"] == topic):
        others = [made.get((name, row["number"])) for name in of]
        if not all(case.whole(name, row["partition"]) for name in (topic, *of)) or None in others:
            continue
        parts = [part for other in others if other for part in (other["grouping"], other["total"])]
        if None in parts:
            continue
        if row["total"] != hash_of(*parts):
            case.add("wrong-aggregate", *place_of(row))
