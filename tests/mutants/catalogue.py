"""The mutants: each breaks a good recorded run in one way and says what must be found, class and coordinates.

A data mutant changes the tables (and whatever must agree with them) as the fault that it stands for would have; what is
expected of it is exact: these classes at these places, nothing else. A harmless one changes what must not matter.
"""

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from onceproof.verifiers.evidence.tables import TRANSACTION
from tests.agreement import agree
from tests.packing import Place
from tests.rundata import Row, RunData

RUNS = Path(__file__).parent / "runs"
ZOMBIE, ABORTS, TOTALS, DELETES = "zombie", "aborts", "totals", "deletes"
TWICE, BANK, CHAIN = "twice", "bank", "chain"
# What of an output says where it comes from.
ORIGIN = ("number", "digest", "source_partition", "source_offset")
OFFSETS = "__consumer_offsets"
COORDINATOR_EPOCH = 100  # of markers that are added: no lower than any before
AGAIN = 9_000  # the number of a transaction that does something again
ANOTHER = 7_000  # the id of a producer that does so: a transaction of the first one would come too early in some log
OF_ANOTHER = {"producer_id": ANOTHER, "producer_epoch": 0, "transactional": True}
# Mutants with fates that no log gives: a batch is open, and later batches of its producer have a marker.
UNREAL = ("part-still-open", "position-still-open-in-the-middle")
Expected = dict[str, set[Place]]
MUTANTS: dict[str, "Mutant"] = {}


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """`run`: the recorded run that it changes; `about`: what happened to it; `pipeline`: whose the run shall be, when
    it is not the one that was recorded; `alone`: no other can be in its folder, since what happened is a fact of the
    whole folder, or since its keys are made of partition and number, as the bank's; `unknown`: a part of the reason
    for which nothing is asserted."""

    name: str
    run: str
    mode: str
    about: str
    change: Callable[[RunData], Expected]
    pipeline: str | None = None
    alone: bool = False
    unknown: str = ""

    @property
    def harmless(self) -> bool:
        """Whether the run must be valid, as far as the checks decide it."""
        return self.about.startswith(("Harmless", "Ledger mode, harmless"))

    @property
    def workload(self) -> str:
        name: str = json.loads(_recorded(self.run).plan_json)["scenario"]["workload"]["name"]
        return self.pipeline or name

    def make(self) -> tuple[RunData, Expected]:
        run: RunData = pickle.loads(_pickled(self.run))  # faster than a deep copy
        expected = self.change(run)
        if self.pipeline:
            plan = json.loads(run.plan_json)
            plan["scenario"]["workload"]["name"] = self.pipeline
            run.plan_json = json.dumps(plan)
        if self.mode == "ledger":
            run.mode, run.inputs = "ledger", []
        if self.name not in UNREAL:
            agree(run)
        return run, expected


@cache
def _pickled(name: str) -> bytes:
    return pickle.dumps(_recorded(name))


@cache
def _recorded(name: str) -> RunData:
    return RunData.read(RUNS / name)


def mutant(
    run: str, mode: str = "full", *, pipeline: str | None = None, alone: bool = False, unknown: str = ""
) -> Callable[[Callable[[RunData], Expected]], Callable[[RunData], Expected]]:
    """Put a function into the catalogue; its docstring says what happened."""

    def add(change: Callable[[RunData], Expected]) -> Callable[[RunData], Expected]:
        name = change.__name__.replace("_", "-")
        assert name not in MUTANTS and change.__doc__
        about = " ".join(change.__doc__.split())
        MUTANTS[name] = Mutant(
            name=name,
            run=run,
            mode=mode,
            about=about,
            change=change,
            pipeline=pipeline,
            alone=alone or run == BANK,
            unknown=unknown,
        )
        return change

    return add


def pick(run: RunData, topic: str = "output", partition: int = 0, *, nth: int = 40) -> Row:
    """An output in the middle of a partition, in the middle of its transaction."""
    rows = sorted(each_of(run, topic, partition), key=lambda row: int(row["offset"]))
    for before, row, after in zip(rows[nth:], rows[nth + 1 :], rows[nth + 2 :], strict=False):
        if before["transaction"] == row["transaction"] == after["transaction"]:
            return row
    raise LookupError(f"no transaction of three outputs in {topic}/{partition}")


def each_of(run: RunData, topic: str, partition: int) -> list[Row]:
    return [row for row in run.outputs if (row["topic"], row["partition"]) == (topic, partition)]


def input_of(row: Row) -> Place:
    return "input", row["source_partition"], row["source_offset"]


def lose(run: RunData, row: Row) -> Expected:
    """Take an output out of the log, as if it had never been sent; returns what is found then: its input is lost."""
    run.remove_output(row)
    return {"lost": {input_of(row)}}


def place_of(row: Row) -> Place:
    return row["topic"], row["partition"], row["offset"]


def of_transaction(run: RunData, row: Row) -> list[Row]:
    """All visible outputs of the transaction that wrote this one."""
    return [each for each in run.outputs if same_transaction(each, row)]


def same_transaction(one: Row, other: Row) -> bool:
    """Of outputs, and of committed positions."""
    return all(one[key] == other[key] for key in TRANSACTION)


def resent(run: RunData, row: Row) -> Row:
    """A second output for the same input: appended to the last batch of its partition, counted in its manifest."""
    last = max(each_of(run, row["topic"], row["partition"]), key=lambda each: int(each["offset"]))
    return insert_behind(run, row, last)


def insert_behind(run: RunData, row: Row, other: Row) -> Row:
    """Put an output behind another one, into its batch and transaction, counted in its manifest; returns it."""
    joined = {**row, **{key: other[key] for key in ("topic", "partition", *TRANSACTION)}}
    return run.insert_output(joined, other["offset"], counted=True)


def into_another_partition(run: RunData, row: Row) -> Row:
    """Let an output stand in another partition that its transaction wrote to; returns it there."""
    there = next(each for each in run.outputs if same_transaction(each, row) and each["partition"] != row["partition"])
    run.remove_output(row)
    return run.insert_output({**row, "partition": there["partition"]}, there["offset"], counted=True)


def redone(run: RunData, rows: list[Row]) -> set[Place]:
    """`redo`, and the places of both."""
    return {place_of(row) for row in [*rows, *redo(run, rows)]}


def redo(run: RunData, rows: list[Row]) -> list[Row]:
    """Send these outputs again in a transaction of their own, at the end of the log, which commits the same positions;
    returns the new ones."""
    first = rows[0]
    own = {"worker": first["worker"], "incarnation": first["incarnation"], "transaction": AGAIN}
    outputs, added = {}, []
    for topic, partition in sorted({(row["topic"], row["partition"]) for row in rows}):
        mine = sorted(
            (row for row in rows if (row["topic"], row["partition"]) == (topic, partition)),
            key=lambda row: int(row["source_offset"]),
        )
        end = run.pinned(topic, partition)
        last = end["end"] + len(mine) - 1
        for batch in run.log(topic, partition):
            if batch["control"] is None and batch["first"] <= mine[0]["offset"] <= batch["last"]:
                data = {
                    **batch,
                    **OF_ANOTHER,
                    "first": end["end"],
                    "last": last,
                    "records": len(mine),
                    "sequence": 0,
                    "marker": last + 1,
                    "fate": "visible",
                }
                run.batches += [data, _marker(data, last + 1)]
        for step, row in enumerate(mine):
            added.append({**row, **own, "offset": end["end"] + step})
            run.observed.append({**run.seen(row), "offset": end["end"] + step})
        outputs[f"{run.prefix}{topic}/{partition}"] = [len(mine), end["end"], last]
        end["end"] = end["high_watermark"] = last + 2
    run.outputs += added
    places = sorted(outputs)
    again = [
        {**each, **own, **OF_ANOTHER, "offset": each["offset"] + 0.5, "marker": None}
        for each in positions_of(run, first)
    ]
    if again:
        places.append(f"{OFFSETS}/{again[0]['log']}")
    run.decide(OF_ANOTHER, places)
    commit(run, again)
    tell(run, first, outputs=outputs)
    return added


def _marker(batch: Row, offset: int, kind: str = "commit") -> Row:
    """The marker that ends the transaction of a batch."""
    ends = {"first": offset, "last": offset, "records": 1, "sequence": -1, "marker": None}
    return {**batch, **ends, "control": kind, "fate": "control", "coordinator_epoch": COORDINATOR_EPOCH}


def tell(run: RunData, row: Row, **told: object) -> None:
    """Put a transaction into the history that was begun by who wrote this row, later, and committed."""
    told = {**run.invoke(row), "transaction": AGAIN, **told}
    run.events += [{**told, "event": event, "type": "ok"} for event in ("begin", "invoke", "outcome")]


def info_without_outputs(run: RunData, topic: str) -> list[Row]:
    """Take back the outputs of the transaction that has the last word there: its commit had no answer, and a later one
    did it again. Returns the positions that it committed, as they are."""
    rows = final(run, topic)
    told, positions = run.outcome(rows[0]), positions_of(run, rows[0])
    redo(run, rows)
    for each in rows:
        run.hide(each["topic"], each["partition"], each["offset"], each["offset"])
    told["type"] = "info"
    return positions


def commit(run: RunData, added: list[Row]) -> None:
    """Put positions into the group's log, each half an offset behind another one; all are whole numbers then."""
    run.commits = sorted([*run.commits, *added], key=lambda each: float(each["offset"]))
    for each in (*run.commits, *run.other_commits):
        each["offset"] = round(each["offset"] * 2)
        each["marker"] = None if each["marker"] is None else each["marker"] * 2
    for each in run.batches:
        if each["topic"] == OFFSETS:
            each["first"], each["last"] = each["first"] * 2, each["last"] * 2
            each["marker"] = None if each["marker"] is None else each["marker"] * 2


def positions_of(run: RunData, row: Row) -> list[Row]:
    """What the transaction that wrote an output committed of positions."""
    return [each for each in run.commits if same_transaction(each, row)]


def turns(run: RunData, partition: int) -> list[Row]:
    """The positions that were committed on an input partition, in their order."""
    return sorted(
        (each for each in run.commits if each["partition"] == partition), key=lambda each: int(each["offset"])
    )


def last_still_open(run: RunData, partition: int) -> None:
    """The positions of the last transaction that committed one on an input partition wait for their marker."""
    *_, last = turns(run, partition)
    set_fate(run, last, "open")


def set_fate(run: RunData, position: Row, fate: str) -> None:
    """Let all positions of the transaction that committed this one have a fate; the group shows the last visible."""
    for each in positions_of(run, position):
        each["fate"] = fate
    for partition in run.positions:
        run.positions[partition] = [each for each in turns(run, partition) if each["fate"] == "visible"][-1]["position"]


def given_up(run: RunData) -> Row:
    """The outcome of a transaction that was given up."""
    return next(e for e in run.events if e["event"] == "outcome" and e["type"] == "fail")


def aborted(run: RunData, partition: int) -> list[Row]:
    """The aborted batches of an output partition."""
    return [each for each in run.log("output", partition) if each["fate"] == "aborted"]


def final(run: RunData, topic: str) -> list[Row]:
    """The outputs of a transaction that has the last word in every partition that it wrote to."""
    ends: dict[tuple[str, int], Row] = {}
    for row in sorted(run.outputs, key=lambda row: int(row["offset"])):
        ends[row["topic"], row["partition"]] = row
    for row in ends.values():
        rows = of_transaction(run, row)
        if topic in {each["topic"] for each in rows} and all(
            same_transaction(ends[each["topic"], each["partition"]], row) for each in rows
        ):
            return rows
    raise LookupError("no transaction is the last in all of its partitions")


def change(run: RunData, row: Row, **values: object) -> Row:
    """Change a record as both readers see it."""
    if run.observed:
        run.seen(row).update({key: value for key, value in values.items() if key in ("number", "digest")})
    row.update(values)
    return row


def swap_with_next(run: RunData, row: Row) -> Row:
    """Exchange what stands here and at the next offset; returns the row there."""
    there = each_of(run, row["topic"], row["partition"])
    other = next(each for each in there if each["offset"] == row["offset"] + 1)
    swap(run, row, other)
    return other


def swap(run: RunData, one: Row, other: Row) -> None:
    """Exchange what stands at two places, with what it says of who wrote it."""
    for left, right in ((run.seen(one), run.seen(other)), (one, other)):
        for name in (*ORIGIN, *TRANSACTION):
            if name in left:
                left[name], right[name] = right[name], left[name]


def forget(run: RunData, number: int, *, acknowledged: bool = False) -> None:
    """The ledger does not know where an input is; it calls it `info`, unless it was acknowledged."""
    row = next(row for row in run.ledger if row["number"] == number)
    row.update(offset=None, acknowledged=acknowledged)


def move_position(run: RunData, partition: int, by: int) -> None:
    """The last committed position, in the log and as the group shows it."""
    last = turns(run, partition)[-1]
    last["position"] += by
    run.positions[partition] = last["position"]
