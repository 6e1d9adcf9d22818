"""Small histories with faults, drawn by Hypothesis: a run simulated step by step, then broken in one to three places.

The run: two input partitions, a few transactions that commit, abort, lose the answer of their commit or die before it;
partitions change hands. The breaks need not make sense together: both oracles must say the same of whatever comes out.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from onceproof.harness.record import history
from tests.rundata import Row, RunData

PREFIX = "op-small-1-"
_BROKERS = ("broker1", "broker2", "broker3")
_ENDINGS = ("ok", "ok", "ok", "fail", "info-committed", "info-aborted", "killed")
Draw = Callable[[st.SearchStrategy[Any]], Any]


class Small(RunData):
    """A simulated run; `topics` are the outputs that each input has."""

    def __init__(self, draw: Draw, topics: tuple[str, ...]) -> None:
        super().__init__()
        self.topics, self._draw = topics, draw
        self.sizes = draw(st.tuples(st.integers(0, 6), st.integers(1, 6)))
        self.ends = {(topic, partition): 0 for topic in topics for partition in range(2)}
        self.events.append(
            {"at": 0.0, "source": "harness", "event": "history", "schema_version": history.SCHEMA_VERSION}
        )
        self._clock = 0.0
        self._epoch = {0: 0, 1: 0}
        self._made = {0: 0, 1: 0}
        self._inputs()
        self._transact()
        self._pin()

    def note(self, source: str, event: str, **fields: Any) -> Row:
        self._clock += 1
        entry = {"at": self._clock, "t": self._clock, "source": source, "event": event, "incarnation": 1, **fields}
        self.events.append(entry)
        return entry

    def batch(self, topic: str, partition: int, first: int, last: int, producer: int, **fields: Any) -> None:
        row = {
            "topic": PREFIX + topic,
            "partition": partition,
            "first": first,
            "last": last,
            "records": last - first + 1,
            "producer_id": producer,
            "producer_epoch": self._epoch.get(producer, -1),
            "sequence": first,
            "transactional": producer >= 0,
            "control": None,
            "crc": first * 31 + last,
            "coordinator_epoch": None,
            "marker": None,
            "intact": True,
            "fate": "visible",
            **fields,
        }
        self.batches += [{**row, "broker": broker} for broker in _BROKERS]

    def _inputs(self) -> None:
        for partition, size in enumerate(self.sizes):
            for offset in range(size):
                row = {"number": offset * 2 + partition, "partition": partition, "offset": offset}
                row["digest"] = row["number"] * 7 + 1
                self.inputs.append(row)
                self.ledger.append(dict(row))
            if size:
                self.batch("input", partition, 0, size - 1, -1)

    def _transact(self) -> None:
        owners = {0: 0, 1: 1}
        for partition, owner in owners.items():
            self.note(f"worker-{owner}", "assigned", partitions=[partition])
        place = {0: 0, 1: 0}
        for _ in range(14):
            left = [partition for partition in (0, 1) if place[partition] < self.sizes[partition]]
            if not left:
                return
            partition = left[0] if len(left) == 1 else self._draw(st.sampled_from(left))
            if self._draw(st.integers(0, 5)) == 0:
                owners[partition] = 1 - owners[partition]
                self.note(f"worker-{owners[partition]}", "assigned", partitions=[partition])
            after = min(self.sizes[partition], place[partition] + self._draw(st.integers(1, 3)))
            if self._transaction(owners[partition], partition, place[partition], after):
                place[partition] = after

    def _transaction(self, worker: int, partition: int, first: int, after: int) -> bool:
        """One transaction; whether it took effect."""
        ending = self._draw(st.sampled_from(_ENDINGS))
        took = ending in ("ok", "info-committed")
        self._made[worker] += 1
        read = {"sources": {str(partition): [first, after]}, "records": after - first}
        common = {"transaction": self._made[worker], **read}
        source = f"worker-{worker}"
        self.note(source, "begin", **common)
        outputs = {}
        for topic in self.topics:
            outputs[f"{PREFIX}{topic}/{partition}"] = self._send(topic, worker, partition, range(first, after), took)
        if ending not in ("fail", "killed"):
            self.note(source, "invoke", outputs=outputs, **common)
            self.commits.append(
                {
                    "topic": f"{PREFIX}input",
                    "log": 0,
                    "transactional": True,
                    "marker": None,
                    "offset": len(self.commits),
                    "partition": partition,
                    "position": after,
                    "worker": worker,
                    "incarnation": 1,
                    "transaction": self._made[worker],
                    "producer_id": worker,
                    "producer_epoch": self._epoch[worker],
                    "fate": "visible" if took else "aborted",
                }
            )
            if took:
                self.positions[partition] = after
        if ending != "killed":
            self.note(source, "outcome", type=ending.partition("-")[0], **common)
        else:
            self._epoch[worker] += 1
        return took

    def _send(self, topic: str, worker: int, partition: int, sources: range, took: bool) -> list[int]:
        start = self.ends[topic, partition]
        for step, source in enumerate(sources):
            number = source * 2 + partition
            row = {
                "topic": topic,
                "partition": partition,
                "offset": start + step,
                "number": number,
                "digest": number * 7 + 1,
                "source_partition": partition,
                "source_offset": source,
                "worker": worker,
                "incarnation": 1,
                "transaction": self._made[worker],
            }
            if took:
                self.outputs.append(row)
                self.observed.append(
                    {
                        "topic": PREFIX + topic,
                        "at": 1e6,
                        **{key: row[key] for key in ("partition", "offset", "number", "digest")},
                    }
                )
        last = start + len(sources) - 1
        self.batch(topic, partition, start, last, worker, fate="visible" if took else "aborted")
        self.batch(topic, partition, last + 1, last + 1, worker, fate="control", control="commit" if took else "abort")
        self.ends[topic, partition] = last + 2
        return [len(sources), start, last]

    def _pin(self) -> None:
        ends = {("input", partition): size for partition, size in enumerate(self.sizes)} | self.ends
        self.partitions = [
            {
                "topic": PREFIX + topic,
                "partition": partition,
                "start": 0,
                "end": end,
                "high_watermark": end,
                "leader": self._draw(st.sampled_from(_BROKERS)),
                "replicas": list(_BROKERS),
                "isr": list(_BROKERS),
            }
            for (topic, partition), end in ends.items()
        ]


def small_runs(topics: tuple[str, ...]) -> st.SearchStrategy[Small]:
    @st.composite
    def made(draw: Draw) -> Small:
        run = Small(draw, topics)
        for change in draw(st.lists(st.sampled_from(BREAKS), min_size=1, max_size=3)):
            change(run, draw)
        return run

    return made()


def _one(draw: Draw, rows: list[Row]) -> Row | None:
    return draw(st.sampled_from(rows)) if rows else None


def drop_output(run: Small, draw: Draw) -> None:
    if row := _one(draw, run.outputs):
        run.remove_output(row, claimed=draw(st.booleans()))


def unread_output(run: Small, draw: Draw) -> None:
    if row := _one(draw, run.outputs):
        run.outputs.remove(row)


def double_output(run: Small, draw: Draw) -> None:
    row, after = _one(draw, run.outputs), _one(draw, run.outputs)
    if row and after and row["topic"] == after["topic"]:
        run.insert_output({**row, "partition": after["partition"]}, after["offset"], counted=draw(st.booleans()))


def change_output(run: Small, draw: Draw) -> None:
    if row := _one(draw, run.outputs):
        name = draw(st.sampled_from(("number", "digest", "source_partition", "source_offset", "header", "transaction")))
        if name == "header":
            row.update(dict.fromkeys(("source_partition", "source_offset", "worker", "incarnation", "transaction")))
        elif name == "number":
            row["number"] = draw(st.sampled_from([None, 5_000, *(each["number"] for each in run.inputs)]))
        elif row[name] is not None:
            row[name] = 1 - row[name] if name == "source_partition" else row[name] + 1


def swap_outputs(run: Small, draw: Draw) -> None:
    one, other = _one(draw, run.outputs), _one(draw, run.outputs)
    if one and other and one is not other and one["topic"] == other["topic"]:
        one["offset"], other["offset"] = other["offset"], one["offset"]
        one["partition"], other["partition"] = other["partition"], one["partition"]


def change_fate(run: Small, draw: Draw) -> None:
    """A data batch has another fate in the log; the readers may or may not agree."""
    data = [each for each in run.batches if each["control"] is None and not each["topic"].endswith("input")]
    if batch := _one(draw, data):
        topic = batch["topic"].removeprefix(PREFIX)
        if draw(st.booleans()):
            run.hide(topic, batch["partition"], batch["first"], batch["last"])
        else:
            fate = draw(st.sampled_from(("visible", "aborted", "open")))
            for each in run.log(topic, batch["partition"]):
                each["fate"] = fate if each["first"] == batch["first"] else each["fate"]


def drop_batch(run: Small, draw: Draw) -> None:
    if batch := _one(draw, run.batches):
        everywhere = draw(st.booleans())
        run.batches = [
            each
            for each in run.batches
            if each is not batch
            and not (everywhere and all(each[key] == batch[key] for key in ("topic", "partition", "first")))
        ]


def change_batch(run: Small, draw: Draw) -> None:
    if batch := _one(draw, run.batches):
        if draw(st.booleans()):
            batch["crc"] += 1
        else:
            for each in run.batches:
                if all(each[key] == batch[key] for key in ("topic", "partition", "first")) and each["producer_id"] >= 0:
                    each["producer_epoch"] += 1


def move_position(run: Small, draw: Draw) -> None:
    partition = draw(st.integers(0, 1))
    run.positions[partition] = max(0, run.positions.get(partition, 0) + draw(st.integers(-2, 2)))


def change_input(run: Small, draw: Draw) -> None:
    if row := _one(draw, run.inputs):
        if draw(st.booleans()):
            row["digest"] += 1
        else:
            run.inputs.remove(row)


def forget_acknowledgement(run: Small, draw: Draw) -> None:
    if row := _one(draw, run.ledger):
        row.update(offset=None, acknowledged=draw(st.booleans()))
        if draw(st.booleans()):
            run.inputs = [each for each in run.inputs if each["number"] != row["number"]]


def write_strange_input(run: Small, draw: Draw) -> None:
    partition = draw(st.integers(0, 1))
    end = run.pinned("input", partition)
    run.inputs.append({"partition": partition, "offset": end["end"], "number": 7_000 + len(run.inputs), "digest": 3})
    run.batch("input", partition, end["end"], end["end"], -1)
    end["end"] = end["high_watermark"] = end["end"] + 1


def store_input_again(run: Small, draw: Draw) -> None:
    if row := _one(draw, run.inputs):
        end = run.pinned("input", row["partition"])
        run.inputs.append({**row, "offset": end["end"]})
        run.batch("input", row["partition"], end["end"], end["end"], -1)
        end["end"] = end["high_watermark"] = end["end"] + 1


def change_commit(run: Small, draw: Draw) -> None:
    if commit := _one(draw, run.commits):
        what = draw(st.sampled_from(("gone", "visible", "aborted", "open", "back")))
        if what == "gone":
            run.commits.remove(commit)
        elif what == "back":
            commit["position"] -= 1
        else:
            commit["fate"] = what


def change_history(run: Small, draw: Draw) -> None:
    if event := _one(draw, [e for e in run.events if e["event"] in ("invoke", "outcome", "assigned")]):
        if event["event"] == "outcome" and draw(st.booleans()):
            event["type"] = draw(st.sampled_from(("ok", "fail", "info")))
        else:
            run.events.remove(event)


def write_position_late(run: Small, draw: Draw) -> None:
    """A member commits a position after all others."""
    if commit := _one(draw, run.commits):
        run.commits.append({**commit, "offset": len(run.commits) + 10, "fate": "visible"})


def stop_before_commit(run: Small, draw: Draw) -> None:
    """A worker stood before its commit for a fault; it may never have gone on."""
    if event := _one(draw, [e for e in run.events if e["event"] == "invoke"]):
        mine = {key: event[key] for key in ("incarnation", "transaction")} | {"fault": f"{len(run.events)}-kill-worker"}
        for told in ("at-phase", "went-on")[: draw(st.integers(1, 2))]:
            run.note(event["source"], told, phase="before-commit", count=event["transaction"], **mine)


def change_observed(run: Small, draw: Draw) -> None:
    if row := _one(draw, run.observed):
        what = draw(st.sampled_from(("digest", "offset", "at")))
        row[what] = row[what] + draw(st.integers(1, 3)) if what != "at" else draw(st.integers(0, 30)) + 0.5


def delete_records(run: Small, draw: Draw) -> None:
    partition = draw(st.integers(0, 1))
    position, low = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    mark = {"partition": partition, "position": position, "low_watermark": low, "end": 6}
    run.note("nemesis", "records-deleted", fault="0-delete-records", to="behind", partitions=[mark])
    if draw(st.booleans()):
        run.note("worker-0", "position-reset", partition=partition, expected=position, found=low)
    end = run.pinned("input", partition)
    _start_at(run, "input", partition, min(low, end["end"]))


def hide_the_end(run: Small, draw: Draw) -> None:
    end = draw(st.sampled_from(run.partitions))
    end["end"] = max(end["start"], end["end"] - draw(st.integers(1, 3)))


def move_start(run: Small, draw: Draw) -> None:
    end = draw(st.sampled_from(run.partitions))
    start = min(end["end"], end["start"] + draw(st.integers(1, 3)))
    _start_at(run, end["topic"].removeprefix(PREFIX), end["partition"], start)


def _start_at(run: Small, topic: str, partition: int, start: int) -> None:
    """Nothing below the log start can be read."""
    run.pinned(topic, partition)["start"] = start
    rows = run.inputs if topic == "input" else run.outputs
    rows[:] = [
        row
        for row in rows
        if (row.get("topic", "input"), row["partition"]) != (topic, partition) or row["offset"] >= start
    ]


def hang(run: Small, draw: Draw) -> None:
    run.open_transactions.append(
        {
            "topic": PREFIX + run.topics[0],
            "partition": draw(st.integers(0, 1)),
            "producer_id": 1,
            "producer_epoch": 0,
            "start_offset": draw(st.integers(0, 3)),
            "known_as": draw(st.sampled_from((None, "worker-0"))),
        }
    )


BREAKS = (
    drop_output,
    unread_output,
    double_output,
    change_output,
    swap_outputs,
    change_fate,
    drop_batch,
    change_batch,
    move_position,
    change_input,
    forget_acknowledgement,
    write_strange_input,
    store_input_again,
    change_history,
    change_commit,
    write_position_late,
    stop_before_commit,
    change_observed,
    delete_records,
    hide_the_end,
    move_start,
    hang,
)
