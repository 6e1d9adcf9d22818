"""A run's folder, of which single rows are read with PyArrow and its filters, without Spark."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from onceproof.harness.model import declaration
from onceproof.harness.record import collected, history, results

Row = Mapping[str, Any]


class Folder:
    """A run's folder with its tables. Raises BadInput when it has none, or damaged ones."""

    def __init__(self, path: Path, events: history.Events | None = None) -> None:
        """Open a folder; `events` is its history, if that was read already."""
        self.path = path
        self.facts = collected.read(path)
        self.events = history.read(path / "history.jsonl") if events is None else events
        self.workload = declaration.read(path)
        self.start = self.events[0].at if self.events else 0.0
        self._prefix: str = self.facts["partitions"][0]["topic"].removesuffix("input")

    def rows(
        self, pattern: str, condition: Any = None, order: Sequence[str] = (), columns: Sequence[str] | None = None
    ) -> list[Row]:
        """Return the rows of a table's files for which a condition of PyArrow holds; all if it is None."""
        found: list[Row] = []
        for table in sorted(self.path.glob(pattern)):  # Spark writes a table as a folder, with one for each topic in it
            frame = ds.dataset(str(table), format="parquet", partitioning="hive")
            found += frame.to_table(filter=condition, columns=None if columns is None else list(columns)).to_pylist()
        return sorted(found, key=lambda row: [row[name] for name in order]) if order else found

    def topic(self, role: str) -> str:
        """Return the name on the cluster of a topic, from the workload's own name of it."""
        return self._prefix + role

    def role(self, topic: str) -> str:
        """Return the workload's own name of a topic."""
        return topic.removeprefix(self._prefix)

    @cached_property
    def leaders(self) -> Mapping[tuple[str, int], str | None]:
        """The brokers whose logs are those of the leaders, by the workload's own name of a topic, and partition."""
        return {(self.role(each["topic"]), each["partition"]): each["leader"] for each in self.facts["partitions"]}

    @cached_property
    def findings(self) -> Sequence[results.Finding]:
        """The findings of the verdict; none if there is no verdict."""
        file = self.path / "results.json"
        return results.read(file).findings if file.exists() else ()
