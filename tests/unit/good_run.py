"""A small good run's folder, made by hand: two partitions, four transactions, three replicas. Tests break it.

    run = GoodRun(path)
    run.outputs.remove(run.output(7))
    run.write()
"""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness import payload, plan
from harness.scenario import parse
from verifiers.segments import SCHEMA as BATCHES
from workloads.processes.generator import SCHEMA as LEDGER

PARTITIONS = 2
RECORDS = 80
PREFIX = "op-test-1"
_INPUTS = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("number", pa.int64()), ("digest", pa.int64())])
_OUTPUTS = pa.schema([("topic", pa.string()), *_INPUTS, ("source_partition", pa.int32()), ("source_offset", pa.int64()),
                      ("worker", pa.int32()), ("incarnation", pa.int32()), ("transaction", pa.int64())])  # fmt: skip
Row = dict[str, Any]


class GoodRun:
    """The run's tables as lists of rows, to be changed before `write`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        keys = payload.Keys(1, 10, 0)
        self.ledger: list[Row] = []
        self.outputs: list[Row] = []
        self.batches: list[Row] = []
        self.events: list[Row] = []
        self.open_transactions: list[Row] = []
        self.moved: list[str] = []
        half = RECORDS // PARTITIONS
        for number in range(RECORDS):
            digest = payload.digest(keys.key(number), payload.value(1, number, 100))
            at = {"number": number, "partition": number % PARTITIONS, "offset": number // PARTITIONS}
            self.ledger.append({**at, "digest": digest})
            # Two transactions a partition: a control record stands between and after them.
            second = at["offset"] >= half // 2
            self.outputs.append({
                "topic": "output", **at, "offset": at["offset"] + second, "digest": digest,
                "source_partition": at["partition"], "source_offset": at["offset"], "worker": at["partition"],
                "incarnation": 1, "transaction": 1 + second,
            })  # fmt: skip
        self.inputs = deepcopy(self.ledger)
        for partition in range(PARTITIONS):
            self._log(f"{PREFIX}-input", partition, [(0, half - 1, -1, None)])
            quarter = half // 2
            self._log(f"{PREFIX}-output", partition, [
                (0, quarter - 1, 100 + partition, None), (quarter, quarter, 100 + partition, "commit"),
                (quarter + 1, half, 100 + partition, None), (half + 1, half + 1, 100 + partition, "commit"),
            ])  # fmt: skip
        self.partitions = [
            {"topic": f"{PREFIX}-{role}", "partition": p, "start": 0, "end": end, "high_watermark": end,
             "leader": "broker1"}
            for role, end in (("input", half), ("output", half + 2)) for p in range(PARTITIONS)
        ]  # fmt: skip
        self.positions = dict.fromkeys(range(PARTITIONS), half)
        self._history()
        self.raw = {"name": "good", "about": "a good run", "workload": {"name": "copy", "partitions": 2}}

    def output(self, number: int) -> Row:
        return next(row for row in self.outputs if row["number"] == number)

    def note(self, event: str, source: str = "nemesis", **fields: Any) -> None:
        """Put an event before the last one, which is `quiesced`."""
        self.events.insert(-1, {"at": 50.0, "source": source, "event": event, **fields})

    def write(self) -> Path:
        (self.folder / "tables").mkdir(parents=True)
        (self.folder / "ledger").mkdir()
        made = plan.make(parse(self.raw, where="test"), 1)
        (self.folder / "plan.json").write_text(made.to_json())
        (self.folder / "history.jsonl").write_text("".join(json.dumps(event) + "\n" for event in self.events))
        pq.write_table(pa.Table.from_pylist(self.ledger, LEDGER), self.folder / "ledger" / "sent-00000.parquet")
        pq.write_table(pa.Table.from_pylist(self.inputs, _INPUTS), self.folder / "tables" / "inputs.parquet")
        pq.write_table(pa.Table.from_pylist(self.outputs, _OUTPUTS), self.folder / "tables" / "outputs.parquet")
        pq.write_table(pa.Table.from_pylist(self.batches, BATCHES), self.folder / "tables" / "batches.parquet")
        facts = {
            "schema_version": 1, "partitions": self.partitions, "open_transactions": self.open_transactions,
            "moved": self.moved, "rows": {"inputs": len(self.inputs), "outputs": len(self.outputs)},
            "positions": [{"partition": p, "offset": o, "metadata": ""} for p, o in self.positions.items()],
        }  # fmt: skip
        (self.folder / "tables" / "collect.json").write_text(json.dumps(facts))
        return self.folder

    def visible(self, topic: str, partition: int, delta: int) -> None:
        """Make the log agree with one output more or less: stretch or shrink its last data batch and all after it."""
        for row in self.batches:
            if (row["topic"], row["partition"]) == (topic, partition) and row["first"] > 1:
                if row["fate"] == "control" and row["first"] > RECORDS // 4 + 1:
                    row["first"] += delta
                    row["last"] += delta
                elif row["first"] == RECORDS // 4 + 1:
                    row["last"] += delta
        for each in self.partitions:
            if (each["topic"], each["partition"]) == (topic, partition):
                each["end"] += delta
                each["high_watermark"] += delta

    def _log(self, topic: str, partition: int, spans: list[tuple[int, int, int, str | None]]) -> None:
        for broker in ("broker1", "broker2", "broker3"):
            for first, last, producer, control in spans:
                self.batches.append({
                    "topic": topic, "partition": partition, "broker": broker, "first": first, "last": last,
                    "records": last - first + 1, "producer_id": producer, "producer_epoch": 0, "sequence": 0,
                    "transactional": producer >= 0, "control": control, "crc": first * 7 + last,
                    "coordinator_epoch": 0 if control else None, "fate": "control" if control else "visible",
                })  # fmt: skip

    def _history(self) -> None:
        self.events = [{"at": 1.0, "source": "harness", "event": "history", "schema_version": 1}]
        half = RECORDS // PARTITIONS
        for transaction, span in ((1, [0, half // 2]), (2, [half // 2, half])):
            for worker in range(PARTITIONS):
                common = {"source": f"worker-{worker}", "incarnation": 1, "transaction": transaction,
                          "t": 2.0, "sources": {str(worker): span}, "records": half // 2}  # fmt: skip
                self.events.append({"at": 2.0, "event": "begin", **common})
                self.events.append({"at": 2.1, "event": "invoke", "outputs": {}, **common})
                self.events.append({"at": 2.2, "event": "outcome", "type": "ok", **common})
        self.events.append({"at": 60.0, "source": "nemesis", "event": "quiesced", "lso_behind": []})
