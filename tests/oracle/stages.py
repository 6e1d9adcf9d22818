"""The services of a pipeline: what each wrote, of what, in which transaction; and the offsets that its group committed.

A pipeline has one stage. A chain has two: the records of the topic between are the first one's, and which input each
was made of is known from the headers at the end of the chain, and from the ranges in the first service's manifests.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.case import Case, owner_of, place_of
from tests.oracle.logs import OFFSETS, Batch, Span
from tests.packing import Place
from tests.rundata import Row

Owner = tuple[Any, Any, Any]  # worker, incarnation, transaction


@dataclass
class Written:
    """A visible record: where it is, whose header or manifest claims it, and the place of what it was made of."""

    place: Place
    owner: Owner | None
    partition: int | None
    offset: int | None


@dataclass
class Commit:
    """A committed offset. `span` is the transaction that holds it, None if none does; `fate` is the log's word."""

    log: int
    at: int
    partition: int
    position: int
    owner: Owner
    batch: Batch | None

    @property
    def span(self) -> Span | None:
        return self.batch.span if self.batch else None

    @property
    def fate(self) -> str:
        return self.batch.fate if self.batch else "unknown"


@dataclass
class Stage:
    """`source` is the topic that it reads; `positions` is what its group shows at rest."""

    number: int
    source: str
    topics: tuple[str, ...]
    commits: list[Commit]
    positions: dict[int, int]
    written: list[Written] = field(default_factory=list)

    def visible(self, partition: int | None = None) -> list[Commit]:
        return [
            each
            for each in self.commits
            if each.fate == "visible" and (partition is None or each.partition == partition)
        ]


def stages(case: Case) -> list[Stage]:
    run, pipeline = case.run, case.pipeline
    if not pipeline.between:
        only = Stage(0, "input", pipeline.judged, _commits(case, run.commits), dict(run.positions))
        only.written = [
            Written(place_of(row), owner_of(row), row["source_partition"], row["source_offset"]) for row in run.outputs
        ]
        return [only]
    shown = {each["partition"]: each["offset"] for each in run.other_positions}
    first = Stage(0, "input", (pipeline.between,), _commits(case, run.commits), dict(run.positions))
    second = Stage(1, pipeline.between, pipeline.judged, _commits(case, run.other_commits), shown)
    first.written = list(_between(case))
    second.written = [
        Written(place_of(row), owner_of(row), row["intermediate_partition"], row["intermediate_offset"])
        for row in run.outputs
    ]
    return [first, second]


def _commits(case: Case, rows: list[Row]) -> list[Commit]:
    found = []
    for row in rows:
        log = case.logs.get((OFFSETS, row["log"]))
        batch = log.at(row["offset"]) if log else None
        found.append(Commit(row["log"], row["offset"], row["partition"], row["position"], owner_of(row), batch))
    return sorted(found, key=lambda each: (each.log, each.at))


def _between(case: Case) -> Iterator[Written]:
    """The records of the topic between of which something came out at the end. A manifest's are in the transaction of
    the first one that it lists."""
    topic = case.pipeline.between
    owners: dict[int, list[tuple[int, int, Any]]] = defaultdict(list)
    for owner, transaction in case.told.transactions.items():
        for call in transaction.calls:
            for name, (_, first, last) in call["outputs"].items():
                own, _, partition = case.own(name).rpartition("/")
                if own == topic:
                    owners[int(partition)].append((first, last, owner))
    done = set()
    for row in case.run.outputs:
        partition, offset = row["intermediate_partition"], row["intermediate_offset"]
        if partition is None or (partition, offset) in done:
            continue
        done.add((partition, offset))
        log = case.logs[topic, partition]
        claimed = next(
            (
                whose
                for first, last, whose in owners[partition]
                if first <= offset <= last and log.span_at(first) is log.span_at(offset)
            ),
            None,
        )
        yield Written((topic, partition, offset), claimed, row["source_partition"], row["source_offset"])


def passed_on(case: Case) -> dict[tuple[int, int], tuple[int, int]]:
    """Partition and offset of a record of the topic between → those of its input, from the first service's manifests:
    what a transaction read of a partition and what it wrote there are ranges of the same length."""
    found = {}
    for transaction in case.told.transactions.values():
        for call in transaction.calls:
            for name, (count, first, last) in call["outputs"].items():
                topic, _, partition = case.own(name).rpartition("/")
                begin, after = call["sources"].get(partition, (0, 0))
                if topic == case.pipeline.between and last - first + 1 == count == after - begin:
                    for step in range(count):
                        found[int(partition), first + step] = int(partition), begin + step
    return found
