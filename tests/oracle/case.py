"""What is known of one run, and what has been found so far: the object that each rule of the oracle gets.

case.add("lost", "input", 3, 41)              a finding, with its place
case.wonder("stalled", "not-consumed", "3")    a reason for which the verdict cannot be `valid`
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.logs import OFFSETS, Batch, Log, logs
from tests.oracle.pipelines import Pipeline, pipeline_of
from tests.oracle.told import Told
from tests.packing import Place
from tests.rundata import Row, RunData

Partition = tuple[str, int]


@dataclass(frozen=True)
class Reason:
    """`kind` is a word of the verdict's reasons; `rule` says which rule of the oracle gives it, `about` of what."""

    kind: str
    rule: str
    about: str


@dataclass
class Verdict:
    """Findings by class, reasons, partitions that are not whole, and the word that follows."""

    findings: dict[str, set[Place]] = field(default_factory=dict)
    reasons: set[Reason] = field(default_factory=set)
    incomplete: set[Partition] = field(default_factory=set)

    @property
    def word(self) -> str:
        return "invalid" if self.findings else "unknown" if self.reasons else "valid"

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(each.kind for each in self.reasons)


class Case:
    """`explained` are outputs, by place, and `excused` expected outputs, by topic and number, that a more telling
    finding has dealt with; `late` are committed offsets of zombies, by partition of the groups' log and offset, and
    `old` batches there of an older epoch than their transaction's, by first offset; `bad` are outputs with a finding of
    their own when outputs were counted."""

    def __init__(self, run: RunData) -> None:
        self.run = run
        self.pipeline: Pipeline = pipeline_of(run)
        self.logs: dict[Partition, Log] = logs(run)
        self.told = Told(run)
        self.verdict = Verdict()
        self.explained: set[Place] = set()
        self.excused: set[tuple[str, int | None]] = set()
        self.bad: set[Place] = set()
        self.late: set[tuple[int, int]] = set()
        self.old: set[tuple[int, int]] = set()
        self.outputs: list[Row] = run.outputs
        self.positions = run.positions if self.pipeline.commits else _after_outputs(run)
        if not self.pipeline.identified:
            self.explain(run.outputs)
        self.at_rest: dict[Place, Row] = {place_of(row): row for row in run.outputs}

    def add(self, cls: str, topic: str, partition: int, offset: int) -> None:
        self.verdict.findings.setdefault(cls, set()).add((topic, partition, offset))

    def found(self, cls: str) -> set[Place]:
        return self.verdict.findings.get(cls, set())

    def wonder(self, kind: str, rule: str, about: object) -> None:
        self.verdict.reasons.add(Reason(kind, rule, str(about)))

    def explain(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.explained.add(place_of(row))
            self.excused.add((row["topic"], row["number"]))

    def whole(self, topic: str, partition: int) -> bool:
        return (topic, partition) not in self.verdict.incomplete

    def own(self, name: str) -> str:
        """The pipeline's own name of a topic on the cluster."""
        return name.removeprefix(self.run.prefix)

    def judged(self) -> Iterator[Log]:
        """The logs of the pipeline's topics."""
        return (log for log in self.logs.values() if log.topic != OFFSETS)

    def seen(self) -> Iterator[Row]:
        """What the live observer saw, with the pipeline's own names of topics."""
        return ({**row, "topic": self.own(row["topic"])} for row in self.run.observed)

    def fate(self, place: Place) -> str:
        """What the log says of a record; `visible` where it says nothing."""
        batch = self.batch(place)
        return batch.fate if batch else "visible"

    def batch(self, place: Place) -> Batch | None:
        """The batch that holds a record; None where the log has none there."""
        log = self.logs.get(place[:2])
        return log.at(place[2]) if log else None


def _after_outputs(run: RunData) -> dict[int, int]:
    """How far each input partition was read, by its outputs."""
    read: dict[int, int] = {}
    for row in run.outputs:
        partition = row["source_partition"]
        read[partition] = max(row["source_offset"] + 1, read.get(partition, 0))
    return read


def place_of(row: Row) -> Place:
    return row["topic"], row["partition"], row["offset"]


def owner_of(row: Row) -> tuple[Any, Any, Any]:
    """The worker, incarnation and transaction that an output's header or an offset's metadata names."""
    return row["worker"], row["incarnation"], row["transaction"]
