"""Give every check what a run's folder says without a query: plan, history, pinned facts, and sizes of tables."""

from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import Any

import pyarrow.parquet as pq

from onceproof.harness.model import declaration
from onceproof.harness.model.plan import Plan
from onceproof.harness.model.workload import Declaration
from onceproof.harness.record import collected
from onceproof.harness.record.events import DeletedTo, Event, Outcome, ProcessEvent, RecordsDeleted
from onceproof.harness.record.history import Events
from onceproof.harness.record.tables import BATCHES, COMMITS, LEDGER, OBSERVED, STATES, Table
from onceproof.verifiers.evidence.cached import cached

_UNITS = {"commits": "committed offsets", "observed": "observed records"}


class Facts:
    """The plan, the history and the facts of a run's folder.

    Raises BadInput when a table is missing, or has another schema version or other columns.
    """

    def __init__(self, folder: Path, planned: Plan, events: Events) -> None:
        self.folder = folder.resolve()
        self.plan, self.events = planned, events
        self.facts: Mapping[str, Any] = collected.read(folder)
        for table, name in ((BATCHES, "batches"), (COMMITS, "commits"), (STATES, "states")):
            table.check(folder.glob(f"tables/{name}.parquet"))
        self.results: dict[Any, Any] = {}
        self.locks: dict[Any, RLock] = {}
        self.workload: Declaration = declaration.read(folder)

    @property
    def full(self) -> bool:
        """Return whether the input topic was read."""
        return bool(self.facts["mode"] == "full")

    @property
    def pinned(self) -> Sequence[dict[str, Any]]:
        """Return the judged partitions: topic, partition, start, end (the LSO), high_watermark, leader, replicas."""
        found: list[dict[str, Any]] = self.facts["partitions"]
        return found

    @property
    def input_topic(self) -> str:
        """Return the name of the input topic on the cluster; its partitions are the first ones in `pinned`."""
        name: str = self.pinned[0]["topic"]
        return name

    @property
    def from_the_first(self) -> bool:
        """Return whether every input partition has log start 0, so that no input was deleted."""
        return not any(each["start"] for each in self.pinned if each["topic"] == self.input_topic)  # speed

    @property
    def lane(self) -> str:
        """Return Spark SQL for the partition in which an output is compared; -1 if it may be in any."""
        return "partition" if self.workload.placed else "-1"  # as `Declaration.expected` has it

    def topic(self, role: str) -> str:
        """Return the name on the cluster of a topic, from the workload's own name of it."""
        return self.input_topic.removesuffix("input") + role

    def role(self, topic: str) -> str:
        """Return the workload's own name of a topic."""
        return topic.removeprefix(self.topic(""))

    @property
    def input_ends(self) -> dict[int, int]:
        """Return the high watermark of each input partition."""
        return {each["partition"]: each["high_watermark"] for each in self.pinned if each["topic"] == self.input_topic}

    @property
    @cached
    def ledger_files(self) -> dict[Path, Any]:
        """Return the files of the ledger, each with its Parquet footer. Raises BadInput when one of them is damaged."""
        return LEDGER.check(self.folder.glob("ledger/sent-*.parquet"))

    @property
    @cached
    def unplaced(self) -> int:
        """Return the number of inputs for which the ledger has no offset."""
        return sum(_without_offset(part, footer) for part, footer in self.ledger_files.items())

    @property
    @cached
    def numbered(self) -> "dict[tuple[str, int | None], array[int]]":
        """Return the numbers of the events that a process (source, incarnation) reported, in the order of arrival."""
        found: dict[tuple[str, int | None], array[int]] = {}
        for each in self.events:
            if isinstance(each, ProcessEvent) and each.n is not None:
                found.setdefault(each.process, array("q")).append(each.n)
        return found

    @property
    @cached
    def untold(self) -> frozenset[tuple[int, int]]:
        """Return the workers' processes (worker, incarnation) of which events are missing, by the events' numbers.

        Nothing may be concluded from an event that such a process did not report.
        """
        return frozenset(
            (int(source.removeprefix("worker-")), incarnation)
            for (source, incarnation), told in self.numbered.items()
            if incarnation is not None and len(set(told)) < max(told)
        )

    def gone_from(self, topic: str) -> int:
        """Return how many records are gone from the partitions of an internal topic that were read."""
        return sum(each["compacted"] + each["start"] for each in self.facts["internal"] if each["topic"] == topic)

    @property
    @cached
    def _sizes(self) -> dict[str, int]:
        return {
            "inputs": sum(footer.num_rows for footer in self.ledger_files.values()),
            "outputs": self.facts["rows"]["outputs"],
            "transactions": len(self.events.of(Outcome)),
            "batches": self._rows(BATCHES, "tables/batches.parquet"),
            "commits": self._rows(COMMITS, "tables/commits.parquet"),
            "observed": self._rows(OBSERVED, "ledger/*/observed-*.parquet"),
            "partitions": len(self.pinned),
            "offsets": sum(max(0, each["end"] - each["start"]) for each in self.pinned),
            "replicas": sum(len(each["replicas"]) for each in self.pinned),
        }

    def _rows(self, table: Table, files: str) -> int:
        return sum(footer.num_rows for footer in table.check(self.folder.glob(files)).values())

    def sizes(self, *units: str) -> dict[str, int]:
        """Return the number of things of each unit in the run, for checks that compare all of them.

        The units are inputs, outputs, transactions, batches (of all replicas), commits (committed offsets), observed
        (records), partitions, offsets and replicas. Raises KeyError for any other unit.
        """
        return {_UNITS.get(unit, unit): self._sizes[unit] for unit in units}

    @property
    def deletes(self) -> list[DeletedTo]:
        """Return the input partitions whose records a fault deleted, with committed offset and low watermark."""
        return self.deletes_of("input")

    def reads_input(self, event: Event) -> bool:
        """Return whether the worker of an event reads the input topic; in a chain, every second one does not."""
        return not self.workload.intermediate_topic or event.worker % 2 == 0

    def deletes_of(self, role: str) -> list[DeletedTo]:
        """Return the partitions of a topic, by the workload's own name of it, whose records a fault deleted."""
        return [mark for each in self.events.of(RecordsDeleted, topic=role) for mark in each.partitions]


def _without_offset(part: Path, footer: Any) -> int:
    """Return the number of rows without an offset in a file of the ledger, from its footer if that has statistics."""
    column = footer.schema.names.index("offset")
    told = [footer.row_group(number).column(column).statistics for number in range(footer.num_row_groups)]
    if all(each is not None and each.has_null_count for each in told):  # speed
        return sum(each.null_count for each in told)
    return int(pq.read_table(part, columns=["offset"])["offset"].null_count)
