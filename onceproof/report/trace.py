"""Tell the story of one record, or of one transactional id, from the tables of a run's folder.

    trace.of_input(folder, 41)                   from the ledger to the offset that covers it
    trace.of_output(folder, "output", 3, 19)     the record at output/3 offset 19, and then its input
    trace.of_key(folder, b"k240")                the inputs with this key
    trace.of_transactional_id(folder, "op-…-worker-0")

A story says what the witnesses say, in the order in which a record passes them: the generator's ledger, the log of the
input, the workers or the requests of an application, the log of the outputs with its markers, the readers, and the
committed offsets. It judges nothing; the last steps are what the verdict found about the same record. The report tells
the same stories in the browser (`page/follow.js`), from the facts that it contains.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow.dataset as ds

from onceproof.harness.base.errors import BadInput
from onceproof.harness.record import payload
from onceproof.harness.record.provenance import owner
from onceproof.report import facts
from onceproof.report.facts import Fact, Place
from onceproof.report.folder import Folder, Row

KEYS_MAX = 20  # inputs with a key, of which the story is told
NO_OUTPUT = "no output of it is visible under read_committed"
NOT_COVERED = "no committed offset covers it"


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


def of_input(folder: Folder, number: int) -> Story:
    """Return the story of an input. Raises BadInput when no input has this number."""
    mine = ds.field("number") == number
    sent = folder.rows("ledger/sent-*.parquet", mine)
    stored = folder.rows("tables/inputs.parquet", mine, ("partition", "offset"))
    if not sent and not stored:
        raise BadInput(f"{folder.path}: no input has the number {number}")
    places = sorted({(row["partition"], row["offset"]) for row in (*sent, *stored) if row["offset"] is not None})
    steps = [Step(witness="generator", says=said_of_sending(row)) for row in sent]
    told = [facts.of(folder, ("input", *place)) for place in places]
    for of_place in told:
        steps += [_step(fact) for fact in of_place if fact.witness != "group"]
    outputs = folder.rows("tables/outputs.parquet", mine, ("topic", "partition", "offset"))
    if not outputs:
        steps.append(Step(witness="outputs", says=NO_OUTPUT))
    for row in outputs:
        steps += _output(folder, row)
    for of_place in told:
        covered = [_step(fact) for fact in of_place if fact.witness == "group"]
        if not covered and facts.without_cover(folder):
            covered = [Step(witness="group", says=NOT_COVERED)]
        steps += covered
    steps += _found(folder, number, places)
    return Story(title=f"input {number}", steps=steps)


def of_output(folder: Folder, role: str, partition: int, offset: int) -> Story:
    """Return the story of the record at a place of an output topic, and of its input if it has one."""
    at = (ds.field("topic") == role) & (ds.field("partition") == partition) & (ds.field("offset") == offset)
    rows = folder.rows("tables/outputs.parquet", at)
    title = f"{role}/{partition} offset {offset}"
    told = facts.of(folder, (role, partition, offset))
    if not rows and not told:
        places = ", ".join(folder.workload.topics) or "none, since the outputs are rows"
        raise BadInput(f"{folder.path}: nothing is known of {title}; allowed: places of {places}")
    if not rows or rows[0]["number"] is None:
        hidden = Step(witness="outputs", says="no read_committed reader sees an output of an input here")
        return Story(title=title, steps=[*map(_step, told), hidden])
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
    known = facts.ids_of(folder)
    steps = [Step(witness="coordinator", says=says) for each, says in known if each == name]
    if not steps:
        allowed = ", ".join(sorted({each for each, _ in known})[:10]) or "none is known"
        raise BadInput(f"{name:.80}: no such transactional id; allowed: {allowed}")
    return Story(title=name, steps=steps)


def said_of_sending(row: Row) -> str:
    """Return what the generator's ledger says of an input."""
    where = f"input/{row['partition']}"
    if row["offset"] is not None:
        return f"sent to {where}, acknowledged at offset {row['offset']}"
    answer = "acknowledged without an offset" if row["acknowledged"] else "not acknowledged, so it may be in the log"
    return f"sent to {where}, {answer}"


def said_of_output(folder: Folder, row: Row) -> str:
    """Return where an output is, and in which transaction it says that it was made."""
    if row["topic"] in folder.workload.tables:
        return f"a row of the table {row['topic']}"
    return f"{row['topic']}/{row['partition']} offset {row['offset']}{made_by(row)}"


def made_by(row: Row) -> str:
    """Return in which transaction an output says that it was made, to be appended to its place."""
    if row["told_1"] is None:
        return ""
    worker, incarnation, transaction = owner(row["told_1"])
    return f", made by worker-{worker}.{incarnation} in transaction {transaction}"


def _step(fact: Fact) -> Step:
    return Step(witness=fact.witness, says=fact.says, at=fact.at)


def _output(folder: Folder, row: Row) -> Iterator[Step]:
    yield Step(witness="outputs", says=said_of_output(folder, row))
    if row["topic"] not in folder.workload.tables:
        place: Place = row["topic"], row["partition"], row["offset"]
        yield from map(_step, facts.of(folder, place))


def _found(folder: Folder, number: int, places: Sequence[tuple[int, int]]) -> Iterator[Step]:
    """Yield the findings with a sample of this input."""
    for finding in folder.findings:
        for sample in finding.samples:
            if sample.get("number") == number or input_place(folder, sample) in places:
                yield Step(witness="verdict", says=f"{finding.cls}: {finding.says}")
                break


def input_place(folder: Folder, sample: Row) -> tuple[int | None, int | None]:
    """Return the partition and offset of the input that a sample of a finding is about, as far as it says so."""
    at = sample if folder.role(str(sample["topic"])) == "input" else sample.get("input") or {}
    return at.get("partition"), at.get("offset")
