"""A run's folder as lists of rows, to be read, changed and written again: what tests break runs with.

run = RunData.read(folder)
run.outputs.remove(run.output(7))
run.write(other_folder)                 the manifest is computed anew
"""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from onceproof.harness.record import manifest
from onceproof.harness.record.events import kinds
from onceproof.harness.record.tables import BATCHES, COMMITS, INPUTS, LEDGER, OBSERVED, OUTPUTS, SCHEMA_VERSION
from onceproof.verifiers.evidence.tables import TRANSACTION

TOLD = ("source_partition", "source_offset", *TRANSACTION, "intermediate_partition", "intermediate_offset")
Row = dict[str, Any]


class RunData:
    """`partitions` are the pinned ones, `positions` the group's; `prefix` is what the topics' names begin with;
    `hidden` is None when nobody looked. A row of the ledger with an offset is acknowledged; one without is `info`,
    unless it says `acknowledged`."""

    def __init__(self) -> None:
        self.ledger: list[Row] = []
        self.inputs: list[Row] = []
        self.outputs: list[Row] = []
        self.hidden: list[Row] | None = None
        self.observed: list[Row] = []
        self.batches: list[Row] = []
        self.commits: list[Row] = []
        self.events: list[Row] = []
        self.partitions: list[Row] = []
        self.positions: dict[int, int] = {}
        self.open_transactions: list[Row] = []
        self.moved: list[str] = []
        self.mode = "full"
        self.compacted = 0
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
        run.batches, run.commits = _rows(tables / "batches.parquet"), _rows(tables / "commits.parquet")
        run.events = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
        facts = json.loads((tables / "collect.json").read_text())
        run.partitions, run.open_transactions = facts["partitions"], facts["open_transactions"]
        run.moved, run.mode = facts["moved"], facts["mode"]
        run.positions = {each["partition"]: each["offset"] for each in facts["positions"]}
        run.plan_json = (folder / "plan.json").read_text()
        return run

    def write(self, folder: Path) -> Path:
        """Write a run's folder; returns it."""
        (folder / "tables").mkdir(parents=True)
        (folder / "ledger" / "observer").mkdir(parents=True)
        (folder / "plan.json").write_text(self.plan_json)
        (folder / "history.jsonl").write_text("".join(json.dumps(_known(event)) + "\n" for event in self.events))
        read = [(self.inputs, INPUTS.arrow, "tables/inputs")] if self.mode == "full" else []
        told = [{"acknowledged": row["offset"] is not None, **row} for row in self.ledger]
        watched = [(self.observed, OBSERVED.arrow, "ledger/observer/observed-00000")] if self.observed else []
        for rows, schema, name in (
            *read,
            *watched,
            (told, LEDGER.arrow, "ledger/sent-00000"),
            (self.batches, BATCHES.arrow, "tables/batches"),
            (self.commits, COMMITS.arrow, "tables/commits"),
        ):
            pq.write_table(pa.Table.from_pylist(rows, schema), folder / f"{name}.parquet")
        outputs = pa.Table.from_pylist(list(map(_together, self.outputs)), OUTPUTS.arrow)
        pq.write_to_dataset(outputs, folder / "tables" / "outputs.parquet", partition_cols=["topic"])
        if self.hidden is not None:
            self.write_hidden(folder)
        facts = {
            "schema_version": SCHEMA_VERSION,
            "mode": self.mode,
            "partitions": self.partitions,
            "open_transactions": self.open_transactions,
            "moved": self.moved,
            "compacted": self.compacted,
            "rows": {"inputs": len(self.inputs), "outputs": len(self.outputs)},
            "positions": [{"partition": p, "offset": o, "metadata": ""} for p, o in self.positions.items()],
        }
        (folder / "tables" / "collect.json").write_text(json.dumps(facts))
        manifest.seal(folder)
        return folder

    def write_hidden(self, folder: Path) -> None:
        hidden = pa.Table.from_pylist(list(map(_together, self.hidden or [])), OUTPUTS.arrow)
        pq.write_table(hidden, folder / "tables" / "hidden.parquet")

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
            batch["records"] -= batch["first"] <= offset <= batch["last"]
        self.batches = [batch for batch in self.batches if batch["records"]]
        self._shift(topic, partition, offset + 1, -1)

    def insert_output(self, row: Row, after: int, *, counted: bool = False) -> Row:
        """Put a record into the batch that holds offset `after` of the row's partition, behind it; returns it."""
        topic, partition = row["topic"], row["partition"]
        for batch in self.log(topic, partition):
            batch["records"] += batch["first"] <= after <= batch["last"]
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
        """Put one aborted record of another producer into the middle of a batch, behind its offset `after`."""
        divided = [batch for batch in self.log(topic, partition) if batch["first"] <= after < batch["last"]]
        self._shift(topic, partition, after + 1, 1)
        for batch in divided:
            there = {"first": after + 1, "last": after + 1, "records": 1, "producer_id": 999_999, "fate": "aborted"}
            self.batches += [{**batch, **there}, {**batch, "first": after + 2, "records": batch["last"] - after - 1}]
            batch["last"], batch["records"] = after, after - batch["first"] + 1

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
    if told[0] is None:
        assert not any(each is not None for each in told), f"part of a header: {row}"
        return row
    whose = (told[2] * 10**5 + told[3]) * 10**10 + told[4]
    return {
        **row,
        "told_0": told[0] * 10**13 + told[1],
        "told_1": whose,
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
