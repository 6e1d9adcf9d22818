"""A run's folder as lists of rows, to be read, changed and written again: what tests break runs with.

run = RunData.read(folder)
run.outputs.remove(run.output(7))
run.write(other_folder)                 the manifest is computed anew
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from onceproof.harness.model import declaration, scenario
from onceproof.harness.record import manifest
from onceproof.harness.record.events import kinds
from onceproof.harness.record.tables import (
    BATCHES,
    COMMITS,
    CONTENTS,
    INPUTS,
    LEDGER,
    LOAD,
    OBSERVED,
    OUTPUTS,
    SCHEMA_VERSION,
    STATES,
)
from onceproof.verifiers.evidence.tables import TRANSACTION

TOLD = ("source_partition", "source_offset", *TRANSACTION, "intermediate_partition", "intermediate_offset")
STRANGER = 999_999  # the id of a producer that is no worker's
Row = dict[str, Any]


class RunData:
    """`partitions` are the pinned ones, `positions` the group's; `prefix` is what the topics' names begin with.

    `commits` are those of the input's group, `other_commits` those of a chain's second one; `internal` are the
    partitions of internal topics that were read. `numbered` says that the numbers of events are kept; otherwise they
    are given anew, since what breaks a run adds and removes events. `hidden` is None when nobody looked. A row of the
    ledger with an offset is acknowledged; one without is `info`, unless it says `acknowledged`."""

    def __init__(self) -> None:
        self.ledger: list[Row] = []
        self.inputs: list[Row] = []
        self.outputs: list[Row] = []
        self.hidden: list[Row] | None = None
        self.observed: list[Row] = []
        self.batches: list[Row] = []
        self.commits: list[Row] = []
        self.other_commits: list[Row] = []
        self.states: list[Row] = []
        self.events: list[Row] = []
        self.partitions: list[Row] = []
        self.positions: dict[int, int] = {}
        self.open_transactions: list[Row] = []
        self.moved: list[str] = []
        self.mode = "full"
        self.internal: list[Row] = []
        self.other_positions: list[Row] = []
        self.numbered = False
        self.load: list[Row] = []
        self.plan_json = ""

    @classmethod
    def read(cls, folder: Path) -> "RunData":
        run = cls()
        tables = folder / "tables"
        run.ledger = [row for part in sorted(folder.glob("ledger/sent-*.parquet")) for row in _rows(part)]
        for row in run.ledger:
            if row["offset"] is not None:
                row.pop("acknowledged", None)
        run.observed = [row for part in sorted(folder.glob("ledger/*/observed-*.parquet")) for row in _rows(part)]
        run.inputs = _rows(tables / "inputs.parquet")
        run.outputs = list(map(_apart, _rows(tables / "outputs.parquet")))
        run.batches, run.states = _rows(tables / "batches.parquet"), _rows(tables / "states.parquet")
        run.events = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
        facts = json.loads((tables / "collect.json").read_text())
        run.partitions, run.open_transactions = facts["partitions"], facts["open_transactions"]
        run.moved, run.mode = facts["moved"], facts["mode"]
        run.internal = facts["internal"]
        run.positions = {e["partition"]: e["offset"] for e in facts["positions"] if e["topic"] == run._input}
        run.other_positions = [each for each in facts["positions"] if each["topic"] != run._input]
        for commit in _rows(tables / "commits.parquet"):
            (run.commits if commit["topic"] == run._input else run.other_commits).append(commit)
        run.plan_json = (folder / "plan.json").read_text()
        return run

    def write(self, folder: Path) -> Path:
        """Write a run's folder; returns it."""
        (folder / "tables").mkdir(parents=True)
        (folder / "ledger" / "observer").mkdir(parents=True)
        (folder / "plan.json").write_text(self.plan_json)
        (folder / "history.jsonl").write_text("".join(json.dumps(event) + "\n" for event in self._told()))
        described = {**json.loads(self.plan_json)["scenario"], "faults": []}
        declaration.write(scenario.recorded(described, where="plan.json").pipeline, folder)
        read = [(self.inputs, INPUTS.arrow, "tables/inputs")] if self.mode == "full" else []
        told = [{"acknowledged": row["offset"] is not None, **row} for row in self.ledger]
        watched = [(self.observed, OBSERVED.arrow, "ledger/observer/observed-00000")] if self.observed else []
        for rows, schema, name in (
            *read,
            *watched,
            (told, LEDGER.arrow, "ledger/sent-00000"),
            (self.batches, BATCHES.arrow, "tables/batches"),
            ([*self.commits, *self.other_commits], COMMITS.arrow, "tables/commits"),
            (sorted(self.states, key=lambda row: (row["log"], row["offset"])), STATES.arrow, "tables/states"),
        ):
            pq.write_table(pa.Table.from_pylist(rows, schema), folder / f"{name}.parquet")
        if self.load:
            pq.write_table(pa.Table.from_pylist(self.load, LOAD.arrow), folder / "ledger" / "load-00000.parquet")
        whole = [{**_together(row), **self.content_of(row)} for row in self.outputs]
        outputs = pa.Table.from_pylist(whole, pa.unify_schemas([OUTPUTS.arrow, CONTENTS.arrow]))
        pq.write_to_dataset(outputs, folder / "tables" / "outputs.parquet", partition_cols=["topic"])
        if self.hidden is not None:
            self.write_hidden(folder)
        facts = {
            "schema_version": SCHEMA_VERSION,
            "mode": self.mode,
            "partitions": self.partitions,
            "open_transactions": self.open_transactions,
            "moved": self.moved,
            "internal": self.internal,
            "rows": {"inputs": len(self.inputs), "outputs": len(self.outputs)},
            "positions": [
                {"topic": self._input, "partition": p, "offset": o, "metadata": ""} for p, o in self.positions.items()
            ]
            + self.other_positions,
        }
        (folder / "tables" / "collect.json").write_text(json.dumps(facts))
        manifest.seal(folder)
        return folder

    def content_of(self, row: Row) -> Row:
        """Key, value and header of an output; empty if no model is compared with them."""
        return {}

    def _told(self) -> list[Row]:
        """The events with the keys that their kinds have, and with their numbers."""
        told, counts = [_known(event) for event in self.events], Counter[tuple[str, int | None]]()
        for event in told:
            if "n" in event and not self.numbered:
                process = event["source"], event.get("incarnation")
                counts[process] += 1
                event["n"] = counts[process]
        return told

    def write_hidden(self, folder: Path) -> None:
        hidden = pa.Table.from_pylist(list(map(_together, self.hidden or [])), OUTPUTS.arrow)
        pq.write_table(hidden, folder / "tables" / "hidden.parquet")

    @property
    def _input(self) -> str:
        """The name of the input topic on the cluster."""
        name: str = self.partitions[0]["topic"]
        return name

    @property
    def prefix(self) -> str:
        """What every topic's name begins with, `op-1a2b3c4d-7-`."""
        name: str = self.partitions[0]["topic"]
        return name.removesuffix("input")

    def output(self, number: int, topic: str = "output") -> Row:
        return next(row for row in self.outputs if (row["number"], row["topic"]) == (number, topic))

    def made_of(self, partition: int, offset: int, topic: str = "output") -> Row:
        """The output whose header names this input."""
        return next(
            row
            for row in self.outputs
            if row["topic"] == topic and (row["source_partition"], row["source_offset"]) == (partition, offset)
        )

    # Changes that leave log, manifests and readers telling one story, but for what they break

    def remove_output(self, row: Row, *, claimed: bool = False) -> None:
        """Take a record out of the log, as if it had never been sent; with `claimed`, its manifest still counts it."""
        topic, partition, offset = row["topic"], row["partition"], row["offset"]
        self.outputs.remove(row)
        self.observed = [each for each in self.observed if self._place(each) != (topic, partition, offset)]
        for part in self.parts(topic, partition):
            if part[1] <= offset <= part[2]:
                part[0] -= 0 if claimed else 1
        for batch in self.log(topic, partition):
            if batch["first"] <= offset <= batch["last"]:
                batch["records"] -= 1
                self._shift_sequences(batch, -1)
        self.batches = [batch for batch in self.batches if batch["records"]]
        self._shift(topic, partition, offset + 1, -1)

    def insert_output(self, row: Row, after: int, *, counted: bool = False) -> Row:
        """Put a record into the batch that holds offset `after` of the row's partition, behind it; returns it."""
        topic, partition = row["topic"], row["partition"]
        for batch in self.log(topic, partition):
            if batch["first"] <= after <= batch["last"]:
                batch["records"] += 1
                self._shift_sequences(batch, 1)
        for part in self.parts(topic, partition):
            part[0] += counted and part[1] <= after <= part[2]
        self._shift(topic, partition, after + 1, 1)
        added = {**row, "offset": after + 1}
        self.outputs.append(added)
        if self.observed:
            self.observed.append(
                {
                    **{key: added[key] for key in ("partition", "offset", "number")},
                    "digest": added.get("content") or added["digest"],
                    "topic": self.prefix + topic,
                    "at": max(each["at"] for each in self.observed),
                }
            )
        return added

    def insert_aborted(self, topic: str, partition: int, after: int) -> None:
        """Put an aborted record of another producer, with its marker, into a batch, behind its offset `after`."""
        divided = [batch for batch in self.log(topic, partition) if batch["first"] <= after < batch["last"]]
        self._shift(topic, partition, after + 1, 2)
        producer = {"producer_id": STRANGER, "producer_epoch": 0, "records": 1}
        for batch in divided:
            there = {**producer, "first": after + 1, "last": after + 1, "sequence": 0, "marker": after + 2}
            ends = {**producer, "first": after + 2, "last": after + 2, "sequence": -1, "marker": None}
            rest = {"first": after + 3, "records": batch["last"] - after - 2}
            self.batches += [
                {**batch, **there, "fate": "aborted"},
                {**batch, **ends, "fate": "control", "control": "abort", "coordinator_epoch": 0},
                {**batch, **rest, "sequence": batch["sequence"] + after - batch["first"] + 1},
            ]
            batch["last"], batch["records"] = after, after - batch["first"] + 1
        self.decide({**producer}, [f"{self.prefix}{topic}/{partition}"], commit=False)

    def _shift_sequences(self, batch: Row, by: int) -> None:
        """Move the sequence numbers of the producer's later batches on the same replica."""
        same = ("topic", "partition", "broker", "producer_id", "producer_epoch")
        for each in self.batches:
            later = each["first"] > batch["first"] and each["control"] is None
            if later and all(each[key] == batch[key] for key in same):
                each["sequence"] += by

    def compact(self, topic: str, records: int, partition: int | None = None) -> None:
        """Let compaction have removed records from a partition of an internal topic; by default the first one."""
        mine = (each for each in self.internal if each["topic"] == topic)
        next(each for each in mine if partition in (None, each["partition"]))["compacted"] = records

    def decide(self, batch: Row, places: list[str], *, commit: bool = True) -> None:
        """Let the coordinator of a batch's producer decide once more, with the epoch that the batch has."""
        mine = [each for each in self.states if each["producer_id"] == batch["producer_id"]]
        name = mine[-1]["transactional_id"] if mine else f"{self.prefix}stranger-{batch['producer_id']}"
        log, version = (mine[-1]["log"], mine[-1]["version"]) if mine else (0, 0)
        for state, partitions in (
            ("PrepareCommit" if commit else "PrepareAbort", places),
            ("CompleteCommit" if commit else "CompleteAbort", []),
        ):
            self.states.append(
                {
                    "log": log,
                    "offset": max((each["offset"] for each in self.states), default=0) + 1,
                    "transactional_id": name,
                    "producer_id": batch["producer_id"],
                    "producer_epoch": batch["producer_epoch"],
                    "state": state,
                    "partitions": partitions,
                    "version": version,
                }
            )

    def hide(self, topic: str, partition: int, first: int, last: int) -> None:
        """Make the batches that overlap these offsets aborted, and their records unseen."""
        for batch in self.log(topic, partition):
            if batch["first"] <= last and first <= batch["last"] and batch["fate"] == "visible":
                batch["fate"] = "aborted"
                lost = range(batch["first"], batch["last"] + 1)
                for rows, seen_still in ((self.outputs, self.hidden), (self.observed, None)):
                    gone = [
                        each for each in rows if self._place(each)[:2] == (topic, partition) and each["offset"] in lost
                    ]
                    ids = {id(each) for each in gone}
                    rows[:] = [each for each in rows if id(each) not in ids]
                    if seen_still is not None:
                        seen_still += gone

    def log(self, topic: str, partition: int) -> list[Row]:
        """The batches of a partition, on all replicas."""
        return [each for each in self.batches if (each["topic"], each["partition"]) == (self.prefix + topic, partition)]

    def pinned(self, topic: str, partition: int) -> Row:
        return next(
            each for each in self.partitions if (each["topic"], each["partition"]) == (self.prefix + topic, partition)
        )

    def batch_of(self, row: Row) -> Row:
        """The batch that holds an output, on one of the replicas."""
        there = self.log(row["topic"], row["partition"])
        return next(b for b in there if b["control"] is None and b["first"] <= row["offset"] <= b["last"])

    def parts(self, topic: str, partition: int) -> list[list[int]]:
        """What manifests say of a partition: [count, first, last] each."""
        place = f"{self.prefix}{topic}/{partition}"
        return [e["outputs"][place] for e in self.events if e["event"] == "invoke" and place in e["outputs"]]

    def invoke(self, row: Row) -> Row:
        """The manifest of the transaction that wrote an output."""
        return next(
            e
            for e in self.events
            if e["event"] == "invoke"
            and e["source"] == f"worker-{row['worker']}"
            and (e["incarnation"], e["transaction"]) == (row["incarnation"], row["transaction"])
        )

    def outcome(self, row: Row) -> Row:
        """How the transaction that wrote an output ended."""
        return self.outcome_of(self.invoke(row))

    def outcome_of(self, manifest: Row) -> Row:
        keys = ("source", "incarnation", "transaction")
        return next(e for e in self.events if e["event"] == "outcome" and all(e[key] == manifest[key] for key in keys))

    def seen(self, row: Row) -> Row:
        """What the observer saw where an output is."""
        place = self._place(row)
        return next(each for each in self.observed if self._place(each) == place)

    def _place(self, row: Row) -> tuple[str, int, int]:
        return row["topic"].removeprefix(self.prefix), row["partition"], row["offset"]

    def _shift(self, topic: str, partition: int, start: int, by: int) -> None:
        """Move everything from offset `start` of a partition on; what spans it grows or shrinks."""
        for rows in (self.outputs, self.observed):
            for row in rows:
                if self._place(row)[:2] == (topic, partition) and row["offset"] >= start:
                    row["offset"] += by
        for batch in self.log(topic, partition):
            if batch["marker"] is not None:
                batch["marker"] += by if batch["marker"] >= start else 0
            batch["first"] += by if batch["first"] >= start else 0
            batch["last"] += by if batch["last"] >= start - 1 else 0
        for part in self.parts(topic, partition):
            part[1] += by if part[1] >= start else 0
            part[2] += by if part[2] >= start - 1 else 0
        end = self.pinned(topic, partition)
        end["end"] += by
        end["high_watermark"] += by


def _known(event: Row) -> Row:
    """An event with the keys that its kind has: what breaks a run copies rows of one kind to make another."""
    model = kinds()[event["event"]]
    return {key: value for key, value in event.items() if key == "event" or key in model.model_fields}


def worker_of(event: Row) -> int:
    """The number of the worker that an event is of."""
    return int(event["source"].removeprefix("worker-"))


def _rows(path: Path) -> list[Row]:
    found: list[Row] = pq.read_table(path).to_pylist()
    return found


def _together(row: Row) -> Row:
    """An output with its header's parts as the integers that a table has."""
    told: list[Any] = [row.get(name) for name in TOLD]
    for part in (told[:2], told[2:5], told[5:]):
        assert len({each is None for each in part}) == 1, f"part of a header: {row}"
    assert told[2] is not None or told[0] is None, f"a header without a transaction: {row}"
    return {
        **row,
        "told_0": None if told[0] is None else told[0] * 10**13 + told[1],
        "told_1": None if told[2] is None else (told[2] * 10**5 + told[3]) * 10**10 + told[4],
        "told_2": None if told[5] is None else told[5] * 10**13 + told[6],
    }


def _apart(row: Row) -> Row:
    """The other way round."""
    told: list[int | None] = [None] * len(TOLD)
    for index, (first, widths) in enumerate(((0, (13,)), (2, (15, 10)), (5, (13,)))):
        rest = row.pop(f"told_{index}", None)
        for step, width in enumerate(widths if rest is not None else ()):
            told[first + step], rest = divmod(rest, 10**width)
            told[first + step + 1] = rest
    return {**row, **dict(zip(TOLD, told, strict=True))}
