"""Inputs: that the log has what was acknowledged, and which outputs are due."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.case import Case
from tests.rundata import Row

Key = tuple[str, int | None]  # topic and number


@dataclass
class Due:
    """What is due of one number on one topic with one digest; `places` are the inputs', once for each output, and
    `to` the partitions of the outputs."""

    count: int = 0
    least: int = 0
    places: list[tuple[int, int | None]] = field(default_factory=list)
    to: Counter[int] = field(default_factory=Counter)

    def last(self) -> tuple[int, int | None]:
        """The last of the inputs: the one that is missing, if not all have an output."""
        return max(self.places, key=lambda place: (place[0], -1 if place[1] is None else place[1]))


class Inputs:
    """`lost` are rows of the ledger that the log does not have, `strangers` rows of the log that the ledger does not
    have, and `due` the outputs, by key and digest."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.full = case.run.mode == "full"
        self.lost: list[Row] = []
        self.strangers: list[Row] = []
        self._first: dict[tuple[int, int], Row] = {}
        if self.full:
            for row in sorted(case.run.inputs, key=lambda row: (int(row["partition"]), int(row["offset"]))):
                self._first.setdefault((row["number"], row["digest"]), row)
            self._compare()
        self.due = self._due()

    def _compare(self) -> None:
        case, log = self.case, {(row["partition"], row["offset"]): row for row in self.case.run.inputs}
        known = set()
        for row in case.run.ledger:
            place = row["partition"], row["offset"]
            if row["offset"] is None:
                held = self._first.get((row["number"], row["digest"]))
                if held:
                    known.add((held["partition"], held["offset"], held["digest"]))
                elif row.get("acknowledged"):
                    self._nowhere(row)
                continue
            known.add((*place, row["digest"]))
            there = log.get(place)
            if row["offset"] < case.logs["input", row["partition"]].start:
                continue
            if there is None and not case.whole("input", row["partition"]):
                continue
            if there is None or there["digest"] != row["digest"]:
                self.lost.append({**row, "found": there and there["number"]})
                case.add("input-lost", "input", *place)
        self.strangers = [
            row for row in case.run.inputs if (row["partition"], row["offset"], row["digest"]) not in known
        ]
        if self.strangers:
            case.wonder("indeterminate", "strangers", "input")

    def _nowhere(self, row: Row) -> None:
        """An input that was acknowledged, without its offset, and is nowhere in the log."""
        log = self.case.logs["input", row["partition"]]
        if log.start == 0 and self.case.whole("input", row["partition"]):
            self.lost.append({**row, "found": None})
            self.case.add("input-lost", "input", row["partition"], log.end)

    def maybe(self) -> set[int]:
        """The numbers of inputs that were never acknowledged, and that the log is not known to have."""
        return {
            row["number"]
            for row in self.case.run.ledger
            if row["offset"] is None
            and not row.get("acknowledged")
            and (row["number"], row["digest"]) not in self._first
        }

    def _due(self) -> dict[Key, dict[int, Due]]:
        due: dict[Key, dict[int, Due]] = defaultdict(lambda: defaultdict(Due))
        rows = [(row, row, 1) for row in self.strangers]
        for row in self.case.run.ledger:
            held = row if row["offset"] is not None else self._first.get((row["number"], row["digest"]))
            acknowledged = row.get("acknowledged", row["offset"] is not None)
            rows.append((row, held or row, int(held is not None or bool(acknowledged))))
        for row, at, least in rows:
            source = {**row, "partition": at["partition"]}
            for topic, partition, digest in self.case.pipeline.expected(_with_key(source, at)):
                each = due[topic, row["number"]][digest]
                each.count, each.least = each.count + 1, each.least + least
                each.places.append((at["partition"], at["offset"]))
                each.to[partition] += 1
        return {key: dict(several) for key, several in due.items()}


def _with_key(row: Row, other: Row) -> Row:
    """A row with the hash of its key, wherever that is known."""
    key: Any = row.get("grouping")
    return {**row, "grouping": other.get("grouping") if key is None else key}
