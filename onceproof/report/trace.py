"""Tell the story of one record, or of one transactional id, from the tables of a run's folder.

    trace.of_input(folder, 41)                   from the ledger to the offset that covers it
    trace.of_output(folder, "output", 3, 19)     the record at output/3 offset 19, and then its input
    trace.of_key(folder, b"k240")                the inputs with this key
    trace.of_transactional_id(folder, "op-…-worker-0")

The tables are read with PyArrow and its filters, without Spark. A story says what the witnesses say, in the order in
which a record passes them: the generator's ledger, the log of the input, the workers or the requests of an application,
the log of the outputs with its markers, the readers, and the committed offsets. It judges nothing; the last steps are
what the verdict found about the same record.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds

from onceproof.harness.base.errors import BadInput
from onceproof.harness.model import declaration
from onceproof.harness.record import collected, history, payload, results
from onceproof.harness.record.events import Invoked, Outcome, PositionReset, RecordsDeleted
from onceproof.harness.record.provenance import owner

Row = Mapping[str, Any]
KEYS_MAX = 20  # inputs with a key, of which the story is told


@dataclass(frozen=True, kw_only=True)
class Step:
    """What one witness says. `at` is in seconds since the start of the run, and None if the witness has no clock."""

    witness: str
    says: str
    at: float | None = None


@dataclass(frozen=True, kw_only=True)
class Story:
    """The steps of one record, or of one transactional id."""

    title: str
    steps: Sequence[Step]


class Folder:
    """A run's folder, of which rows are read. Raises BadInput when it has no tables, or damaged ones."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.facts = collected.read(path, missing="the run ended before its tables were collected")
        self.events = history.read(path / "history.jsonl")
        self.workload = declaration.read(path)
        self.start = self.events[0].at if self.events else 0.0
        self._prefix: str = self.facts["partitions"][0]["topic"].removesuffix("input")

    def rows(self, pattern: str, condition: Any, order: Sequence[str] = ()) -> list[Row]:
        """Return the rows of a table's files for which a condition of PyArrow holds."""
        found: list[Row] = []
        for table in sorted(self.path.glob(pattern)):  # Spark writes a table as a folder, with one for each topic in it
            frame = ds.dataset(str(table), format="parquet", partitioning="hive")
            found += frame.to_table(filter=condition).to_pylist()
        return sorted(found, key=lambda row: [row[name] for name in order])

    def topic(self, role: str) -> str:
        """Return the name on the cluster of a topic, from the workload's own name of it."""
        return self._prefix + role

    def role(self, topic: str) -> str:
        """Return the workload's own name of a topic."""
        return topic.removeprefix(self._prefix)

    def batch(self, role: str, partition: int, offset: int) -> Row | None:
        """Return the batch of the leader's log that has an offset; None if it is gone."""
        leader = next((each["leader"] for each in self.facts["partitions"] if self._is(each, role, partition)), None)
        inside = (ds.field("first") <= offset) & (ds.field("last") >= offset) & (ds.field("broker") == leader)
        at = (ds.field("topic") == self.topic(role)) & (ds.field("partition") == partition)
        found = self.rows("tables/batches.parquet", at & inside) if leader else []
        return found[0] if found else None

    def _is(self, pinned: Row, role: str, partition: int) -> bool:
        return bool(pinned["topic"] == self.topic(role) and pinned["partition"] == partition)

    @cached_property
    def findings(self) -> Sequence[results.Finding]:
        """The findings of the verdict; none if there is no verdict."""
        file = self.path / "results.json"
        return results.read(file).findings if file.exists() else ()


def of_input(folder: Folder, number: int) -> Story:
    """Return the story of an input. Raises BadInput when no input has this number."""
    sent = folder.rows("ledger/sent-*.parquet", ds.field("number") == number)
    stored = folder.rows("tables/inputs.parquet", ds.field("number") == number, ("partition", "offset"))
    if not sent and not stored:
        raise BadInput(f"{folder.path}: no input has the number {number}")
    places = sorted({(row["partition"], row["offset"]) for row in (*sent, *stored) if row["offset"] is not None})
    steps = [_sent(row) for row in sent]
    for partition, offset in places:
        steps += _in_log(folder, "input", partition, offset)
        steps += _fetched(folder, partition, offset)
    outputs = folder.rows("tables/outputs.parquet", ds.field("number") == number, ("topic", "partition", "offset"))
    if not outputs:
        steps.append(Step(witness="outputs", says="no output of it is visible under read_committed"))
    for row in outputs:
        steps += _output(folder, row)
    for partition, offset in places:
        steps += _covered(folder, partition, offset)
    steps += _found(folder, number, places)
    return Story(title=f"input {number}", steps=steps)


def of_output(folder: Folder, role: str, partition: int, offset: int) -> Story:
    """Return the story of the record at a place of an output topic, and of its input if it has one."""
    at = (ds.field("topic") == role) & (ds.field("partition") == partition) & (ds.field("offset") == offset)
    rows = folder.rows("tables/outputs.parquet", at)
    title = f"{role}/{partition} offset {offset}"
    batch = folder.batch(role, partition, offset)
    if not rows and batch is None:
        places = ", ".join(folder.workload.topics) or "none, since the outputs are rows"
        raise BadInput(f"{folder.path}: nothing is known of {title}; allowed: places of {places}")
    if not rows or rows[0]["number"] is None:
        hidden = Step(witness="outputs", says="no read_committed reader sees an output of an input here")
        return Story(title=title, steps=[*_in_log(folder, role, partition, offset), hidden])
    story = of_input(folder, rows[0]["number"])
    return Story(title=f"{title}: {story.title}", steps=story.steps)


def of_key(folder: Folder, key: bytes) -> list[Story]:
    """Return the stories of the first 20 inputs with a key. Raises BadInput when no input has it."""
    rows = folder.rows("ledger/sent-*.parquet", ds.field("grouping") == payload.key_hash(key), ("number",))
    if not rows:
        raise BadInput(f"{folder.path}: no input has the key {key.decode(errors='replace')!r:.80}")
    return [of_input(folder, row["number"]) for row in rows[:KEYS_MAX]]


def of_transactional_id(folder: Folder, name: str) -> Story:
    """Return what the coordinator's log says of a transactional id, with the spans of its producer epochs.

    Raises BadInput when the log has no such transactional id.
    """
    states = folder.rows("tables/states.parquet", ds.field("transactional_id") == name, ("log", "offset"))
    if not states:
        known = {row["transactional_id"] for row in folder.rows("tables/states.parquet", pc.scalar(True))}
        allowed = ", ".join(sorted(known)[:10]) or "none is known"
        raise BadInput(f"{name:.80}: no such transactional id; allowed: {allowed}")
    steps = [
        Step(
            witness="coordinator",
            says=f"__transaction_state/{row['log']} offset {row['offset']}: {row['state']}, {_producer(row)}"
            + (f", {', '.join(sorted(map(folder.role, row['partitions'])))}" if row["partitions"] else ""),
        )
        for row in states
    ]
    return Story(title=name, steps=steps)


def _sent(row: Row) -> Step:
    where = f"input/{row['partition']}"
    if row["offset"] is not None:
        return Step(witness="generator", says=f"sent to {where}, acknowledged at offset {row['offset']}")
    answer = "acknowledged without an offset" if row["acknowledged"] else "not acknowledged, so it may be in the log"
    return Step(witness="generator", says=f"sent to {where}, {answer}")


def _in_log(folder: Folder, role: str, partition: int, offset: int) -> Iterator[Step]:
    """Yield the batch that has a record, and deletions that removed it."""
    where = f"{role}/{partition} offset {offset}"
    batch = folder.batch(role, partition, offset)
    if batch is not None:
        ends = f", and the marker at {batch['marker']}" if batch["marker"] is not None else ""
        kind = "transactional, " if batch["transactional"] else ""
        says = (
            f"{where}: in the batch {batch['first']} to {batch['last']}, {_producer(batch)}, sequence "
            f"{batch['sequence']}, {kind}{batch['fate']}{ends}, on {batch['broker']}"
        )
        yield Step(witness="log", says=says)
    for event in folder.events.of(RecordsDeleted, topic=role):
        for each in event.partitions:
            if each.partition == partition and offset < each.low_watermark:
                says = f"{where}: removed, the log now starts at {each.low_watermark}"
                yield Step(witness="log", says=says, at=event.at - folder.start)


def _fetched(folder: Folder, partition: int, offset: int) -> Iterator[Step]:
    """Yield the transactions that read an input, and resets of the position that passed it."""
    for event in folder.events:
        if isinstance(event, Invoked | Outcome) and event.source.startswith("worker-"):
            first, after = event.sources.get(str(partition), (0, 0))
            if first <= offset < after and not (folder.workload.intermediate_topic and event.worker % 2):
                told = "is about to commit" if isinstance(event, Invoked) else f"told {event.type} of"
                says = f"{event.source}.{event.incarnation} {told} transaction {event.transaction}, which read "
                says += f"input/{partition} {first} to {after - 1}"
                yield Step(witness="worker", says=says, at=event.at - folder.start)
        if isinstance(event, PositionReset) and event.partition == partition and event.expected <= offset < event.found:
            says = f"{event.source}.{event.incarnation} was reset from {event.expected} to {event.found}, past it"
            yield Step(witness="worker", says=says, at=event.at - folder.start)


def _output(folder: Folder, row: Row) -> Iterator[Step]:
    role, partition, offset = row["topic"], row["partition"], row["offset"]
    if role in folder.workload.tables:
        yield Step(witness="outputs", says=f"a row of the table {role}")
        return
    yield Step(witness="outputs", says=f"{role}/{partition} offset {offset}{_made_by(row)}")
    yield from _in_log(folder, role, partition, offset)
    at = (ds.field("topic") == folder.topic(role)) & (ds.field("partition") == partition)
    for seen in folder.rows("ledger/*/observed-*.parquet", at & (ds.field("offset") == offset)):
        says = f"read {role}/{partition} offset {offset} under read_committed"
        yield Step(witness="observer", says=says, at=seen["at"] - folder.start)


def _made_by(row: Row) -> str:
    """Return which transaction an output says that it was made in, by its provenance header."""
    if row["told_1"] is None:
        return ""
    worker, incarnation, transaction = owner(row["told_1"])
    return f", made by worker-{worker}.{incarnation} in transaction {transaction}"


def _covered(folder: Folder, partition: int, offset: int) -> Iterator[Step]:
    """Yield the first visible commit that covers an input, or say that there is none."""
    of = (ds.field("topic") == folder.topic("input")) & (ds.field("partition") == partition)
    covers = of & (ds.field("position") > offset) & (ds.field("fate") == "visible")
    found = folder.rows("tables/commits.parquet", covers, ("offset",))
    where = f"input/{partition} offset {offset}"
    if not found:
        if folder.workload.claim.position in ("in-transaction", "transactional", "group"):
            yield Step(witness="group", says=f"no committed offset covers {where}")
        return
    first = found[0]
    who = "" if first["worker"] is None else f" by worker-{first['worker']}.{first['incarnation']}"
    how = f"in a transaction of {_producer(first)}" if first["transactional"] else "outside of a transaction"
    place = f"__consumer_offsets/{first['log']} offset {first['offset']}"
    yield Step(witness="group", says=f"{first['position']} was committed{who} {how}, at {place}, and covers {where}")


def _found(folder: Folder, number: int, places: Sequence[tuple[int, int]]) -> Iterator[Step]:
    """Yield the findings with a sample of this input."""
    for finding in folder.findings:
        for sample in finding.samples:
            at = sample if folder.role(str(sample["topic"])) == "input" else sample.get("input") or {}
            if sample.get("number") == number or (at.get("partition"), at.get("offset")) in places:
                yield Step(witness="verdict", says=f"{finding.cls}: {finding.says}")
                break


def _producer(row: Row) -> str:
    if row["producer_id"] < 0:
        return "no producer id"
    return f"producer {row['producer_id']} epoch {row['producer_epoch']}"
