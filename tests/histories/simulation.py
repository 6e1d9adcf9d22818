"""A small run, simulated step by step: what clients, brokers and coordinators would have written.

Two input partitions, and a few transactions that commit, abort, lose the answer of their commit or die before it;
partitions change hands. Each coordinator writes its decisions, with one epoch for many transactions or one for each.
In a chain, a second service reads what the first one has committed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from onceproof.harness.record import history
from tests.oracle.pipelines import hash_of
from tests.rundata import Row, RunData

PREFIX = "op-small-1-"
OFFSETS = "__consumer_offsets"
BROKERS = ("broker1", "broker2", "broker3")
_ENDINGS = ("ok", "ok", "ok", "fail", "info-committed", "info-aborted", "killed")
Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class Shape:
    """What is simulated: the workload, what each service writes, and in which mode the run is judged."""

    workload: str
    stages: tuple[tuple[str, ...], ...]
    mode: str = "full"

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that are judged."""
        return self.stages[-1]


SHAPES = {
    "copy": Shape("copy", (("output",),)),
    "fan-out": Shape("fan-out", (("stock", "payment"),)),
    "sums": Shape("sums", (("sums", "changelog"),)),
    "chain": Shape("chain", (("middle",), ("output",))),
    "ledger mode": Shape("copy", (("output",),), "ledger"),
}


class Small(RunData):
    def __init__(self, draw: Draw, shape: Shape) -> None:
        super().__init__()
        self.shape, self.draw, self.mode = shape, draw, shape.mode
        self.topics = shape.topics
        self.sizes = draw(st.tuples(st.integers(0, 6), st.integers(1, 6)))
        self._version = draw(st.sampled_from((0, 0, 2)))
        self._ends = {(topic, p): 0 for topics in shape.stages for topic in topics for p in range(2)}
        self._ends[OFFSETS, 0] = 0
        self._epoch: dict[int, int] = {}
        self._made: dict[int, int] = {}
        self._sent: dict[tuple[Any, ...], int] = {}
        self._totals: dict[tuple[str, int, int], int] = {}
        self._shown: list[dict[int, int]] = [{} for _ in shape.stages]
        self._clock = 0.0
        first = {"at": 0.0, "source": "harness", "event": "history", "schema_version": history.SCHEMA_VERSION}
        self.events.append(first)
        self._inputs()
        self._read: list[dict[int, list[tuple[int, Row]]]] = [
            {p: [(row["offset"], row) for row in self.inputs if row["partition"] == p] for p in range(2)},
            {0: [], 1: []},
        ]
        for stage in range(len(shape.stages)):
            self._serve(stage)
        self._pin()

    def note(self, source: str, event: str, **fields: Any) -> Row:
        self._clock += 1
        entry = {"at": self._clock, "t": self._clock, "source": source, "event": event, "incarnation": 1, **fields}
        self.events.append(entry)
        return entry

    def batch(self, topic: str, partition: int, count: int, producer: int, **fields: Any) -> int:
        """Append a batch, on each replica; returns its first offset."""
        first = self._ends.get((topic, partition), 0)
        epoch = self._epoch.get(producer, -1)
        lane = topic, partition, producer, epoch
        row = {
            "topic": topic if topic == OFFSETS else PREFIX + topic,
            "partition": partition,
            "first": first,
            "last": first + count - 1,
            "records": count,
            "producer_id": producer,
            "producer_epoch": epoch,
            "sequence": 0 if topic == OFFSETS else self._sent.get(lane, 0),
            "transactional": producer >= 0,
            "control": None,
            "crc": first * 31 + count,
            "coordinator_epoch": None,
            "marker": None,
            "intact": True,
            "fate": "visible",
            **fields,
        }
        if row["control"] is None:
            self._sent[lane] = self._sent.get(lane, 0) + count
        self._ends[topic, partition] = first + count
        self.batches += [{**row, "broker": broker} for broker in BROKERS]
        return first

    def _inputs(self) -> None:
        for partition, size in enumerate(self.sizes):
            for offset in range(size):
                number = offset * 2 + partition
                key = hash_of(self.draw(st.sampled_from((1, 2))))
                row = {"number": number, "partition": partition, "offset": offset, "digest": number * 7 + 1}
                self.inputs.append({**row, "grouping": key})
                self.ledger.append({**row, "grouping": key})
            if size:
                self.batch("input", partition, size, -1)
                self._ends.pop(("input", partition))

    def _serve(self, stage: int) -> None:
        """One service reads all that there is, worker by worker."""
        workers = [stage, stage + len(self.shape.stages)]
        owners = dict(enumerate(workers))
        for worker in workers:
            self._epoch[worker], self._made[worker] = 0, 0
            self.note(f"worker-{worker}", "started", pid=1)
            self.note(f"worker-{worker}", "ready", client="")
        for partition, owner in owners.items() if stage == 0 else ():
            self.note(f"worker-{owner}", "assigned", partitions=[partition])
        place = {0: 0, 1: 0}
        for _ in range(14):
            left = [partition for partition in (0, 1) if place[partition] < len(self._read[stage][partition])]
            if not left:
                return
            partition = left[0] if len(left) == 1 else self.draw(st.sampled_from(left))
            if stage == 0 and self.draw(st.integers(0, 5)) == 0:
                owners[partition] = workers[1 - workers.index(owners[partition])]
                self.note(f"worker-{owners[partition]}", "assigned", partitions=[partition])
            after = min(len(self._read[stage][partition]), place[partition] + self.draw(st.integers(1, 3)))
            items = self._read[stage][partition][place[partition] : after]
            if self._transaction(stage, owners[partition], partition, items):
                place[partition] = after

    def _transaction(self, stage: int, worker: int, partition: int, items: list[tuple[int, Row]]) -> bool:
        """One transaction; whether it took effect."""
        ending = self.draw(st.sampled_from(_ENDINGS))
        took = ending in ("ok", "info-committed")
        self._made[worker] += 1
        first, after = items[0][0], items[-1][0] + 1
        common = {
            "transaction": self._made[worker],
            "sources": {str(partition): [first, after]},
            "records": len(items),
        }
        source, places, outputs = f"worker-{worker}", [], {}
        self.note(source, "begin", **common)
        totals = dict(self._totals)
        for topic in self.shape.stages[stage]:
            places.append(f"{PREFIX}{topic}/{partition}")
            outputs[places[-1]] = self._send(stage, topic, worker, partition, items, took)
        if ending not in ("fail", "killed"):
            self.note(source, "invoke", outputs=outputs, **common)
            places.append(f"{OFFSETS}/0")
            self._commit(stage, worker, partition, after)
        if not took:
            self._totals = totals
        elif stage == 0 or took:
            self._shown[stage][partition] = after
        self._decide(worker, places, commit=took, fenced=ending == "killed")
        if ending != "killed":
            self.note(source, "outcome", type=ending.partition("-")[0], **common)
        return took

    def _commit(self, stage: int, worker: int, partition: int, position: int) -> None:
        row = {
            "topic": f"{PREFIX}{'input' if stage == 0 else self.shape.stages[0][0]}",
            "log": 0,
            "offset": self.batch(OFFSETS, 0, 1, worker),
            "partition": partition,
            "position": position,
            "worker": worker,
            "incarnation": 1,
            "transaction": self._made[worker],
            "committed_ms": 0,
        }
        (self.commits if stage == 0 else self.other_commits).append(row)

    def _decide(self, worker: int, places: list[str], *, commit: bool, fenced: bool) -> None:
        """The coordinator's records, and a marker in each partition."""
        kind, raised = "Commit" if commit else "Abort", fenced or self._version == 2
        for state in ("Ongoing", f"Prepare{kind}", f"Complete{kind}"):
            if state.startswith("Prepare"):
                self._epoch[worker] += raised
            self.states.append(
                {
                    "log": worker,
                    "offset": len(self.states),
                    "transactional_id": f"{PREFIX}worker-{worker}",
                    "producer_id": worker,
                    "producer_epoch": self._epoch[worker],
                    "state": state,
                    "partitions": [] if state.startswith("Complete") else places,
                    "version": self._version,
                }
            )
        for place in places:
            topic, _, partition = place.removeprefix(PREFIX).rpartition("/")
            marker = {"control": kind.lower(), "coordinator_epoch": 0, "sequence": -1}
            self.batch(topic, int(partition), 1, worker, **marker)
        self._epoch[worker] += fenced and self._version < 2

    def _send(
        self, stage: int, topic: str, worker: int, partition: int, items: list[tuple[int, Row]], took: bool
    ) -> list[int]:
        start = self.batch(topic, partition, len(items), worker)
        for step, (source, made_of) in enumerate(items):
            row = {
                "topic": topic,
                "partition": partition,
                "offset": start + step,
                "number": made_of["number"],
                "digest": made_of["digest"],
                "source_partition": partition,
                "source_offset": source,
                "worker": worker,
                "incarnation": 1,
                "transaction": self._made[worker],
            }
            if self.shape.workload == "sums":
                row |= self._total(topic, partition, made_of)
            if stage:
                row |= {"intermediate_partition": partition, "intermediate_offset": source}
                row["source_offset"] = made_of["source"]
            if took and topic not in self.shape.topics:
                self._read[1][partition].append((start + step, {**made_of, "source": source}))
            elif took:
                self.outputs.append(row)
                seen = {key: row[key] for key in ("partition", "offset", "number", "digest")}
                seen["digest"] = row.get("content") or row["digest"]
                self.observed.append({"topic": PREFIX + topic, "at": 1e6, **seen})
        return [len(items), start, start + len(items) - 1]

    def _total(self, topic: str, partition: int, made_of: Row) -> Row:
        chain = topic, partition, made_of["grouping"]
        self._totals[chain] = self._totals.get(chain, 0) + made_of["number"] % 100 + 1
        digest = hash_of(made_of["grouping"], made_of["digest"])
        return {
            "digest": digest,
            "content": digest ^ self._totals[chain],
            "total": self._totals[chain],
            "grouping": made_of["grouping"],
        }

    def _pin(self) -> None:
        groups = self._ends.pop((OFFSETS, 0))
        ends = {("input", partition): size for partition, size in enumerate(self.sizes)} | self._ends
        self.partitions = [
            self._pinned(PREFIX + topic, partition, end, self.draw(st.sampled_from(BROKERS)))
            for (topic, partition), end in ends.items()
        ]
        self.internal = [{**self._pinned(OFFSETS, 0, groups, BROKERS[0]), "compacted": 0}]
        self.positions = self._shown[0]
        if len(self._shown) > 1:
            name = PREFIX + self.shape.stages[0][0]
            self.other_positions = [
                {"topic": name, "partition": p, "offset": o, "metadata": ""} for p, o in self._shown[1].items()
            ]

    def _pinned(self, name: str, partition: int, end: int, leader: str) -> Row:
        return {
            "topic": name,
            "partition": partition,
            "start": 0,
            "end": end,
            "high_watermark": end,
            "leader": leader,
            "replicas": list(BROKERS),
            "isr": list(BROKERS),
        }
