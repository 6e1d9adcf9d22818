"""The second oracle: what must be found in a small run, by sets and dictionaries, one record at a time.

Slow and plain on purpose. It shares no code with the verifiers; where the two differ, one of them is wrong.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tests.oracle_log import LogOracle, place_of, told_by, transaction_of
from tests.packing import Found, Place
from tests.rundata import Row


class Oracle(LogOracle):
    def judge(self) -> Found:
        self._complete()
        explained: set[Place] = set()
        excused: set[tuple[str, int | None]] = set()
        spans: list[tuple[int, int, int]] = []
        for rows, torn in ((self._aborted(), ()), self._torn(), (self._zombies(), ()), (self._readers(), ())):
            explained |= {place_of(row) for row in rows}
            excused |= {(row["topic"], row["number"]) for row in rows}
            spans += [(int(p), *span) for event in torn for p, span in event["sources"].items()]
        lost, strangers = self._inputs()
        numbers = {row["number"] for row in lost} | {row["found"] for row in lost}
        broken = [row for row in self.run.outputs if row["number"] is not None and row["number"] in numbers]
        explained |= {place_of(row) for row in broken}
        excused |= {(row["topic"], row["number"]) for row in broken}
        spans += [(row["partition"], row["offset"], row["offset"] + 1) for row in lost if row["offset"] is not None]
        standing = [row for row in self.run.outputs if place_of(row) not in explained]
        self._count(standing, excused, spans, strangers, {row["partition"] for row in lost})
        self._hung_and_replicas()
        return self.found

    def _count(
        self,
        standing: list[Row],
        excused: set[tuple[str, int | None]],
        spans: list[tuple[int, int, int]],
        strangers: list[Row],
        short: set[int],
    ) -> None:
        due = self._due(strangers)
        there: dict[tuple[str, Any], list[Row]] = defaultdict(list)
        for row in standing:
            there[row["topic"], row["number"]].append(row)
        intact = {
            key: Counter(row["digest"] for row in rows if row["digest"] in due.get(key, {}))
            for key, rows in there.items()
        }
        missing = [
            (key, each)
            for key, wanted in due.items()
            for digest, each in wanted.items()
            if intact.get(key, Counter())[digest] < each.least
        ]
        places = {(key[0], each.partition, each.offset) for key, each in missing}
        claimed, bad = set(), set()
        for key, rows in there.items():
            for row in rows:
                claims = row["topic"], row["source_partition"], row["source_offset"]
                cls = self._cls(row, due.get(key, {}), intact[key], claims in places)
                if row["digest"] not in intact[key]:
                    claimed.add(claims)
                if cls:
                    self._add(cls, *place_of(row))
                    bad.add(key)
        for key, each in missing:
            self._missing(key, each, claimed, excused, spans)
        whole = {key: Due.of(wanted.values()) for key, wanted in due.items()}
        above = {
            key
            for key, each in whole.items()
            if each.highest is not None and each.highest >= self.run.positions.get(each.partition, 0)
        }
        self._positions(there, {key for key in above if whole[key].partition not in self.moved}, short)
        suspects = bad | {key for key, _ in missing} | above | {key for key, each in whole.items() if each.count > 1}
        fitting = [row for row in standing if (row["topic"], row["number"]) not in suspects]
        self._order(fitting)
        self._apart(fitting)
        self._without_outputs([whole[key] for key in suspects if key in whole])
        self._back()

    def _due(self, strangers: list[Row]) -> dict[tuple[str, Any], dict[int, "Due"]]:
        due: dict[tuple[str, Any], dict[int, Due]] = defaultdict(lambda: defaultdict(Due))
        for topic in self.topics:
            for row in strangers:
                due[topic, row["number"]][row["digest"]].add(row, 1)
            for row in self.run.ledger:
                held = self.first.get((row["number"], row["digest"])) if row["offset"] is None else row
                least = int(held is not None or bool(row.get("acknowledged")))
                due[topic, row["number"]][row["digest"]].add(held or row, least)
        return dict(due)

    def _cls(self, row: Row, wanted: dict[int, "Due"], intact: Counter[int], claims_missing: bool) -> str | None:
        if row["digest"] not in intact:
            return "corrupted" if wanted or claims_missing else "phantom"
        due = wanted[row["digest"]]
        if intact[row["digest"]] > due.count:
            return "reset-reprocess" if self._reset(due, self._reprocessed) else "duplicate"
        header = any(
            row["source_partition"] == partition and offset in (None, row["source_offset"])
            for partition, offset in due.places
        )
        return None if header and row["partition"] == due.partition else "corrupted"

    def _missing(
        self,
        key: tuple[str, Any],
        due: "Due",
        claimed: set[Any],
        excused: set[tuple[str, int | None]],
        spans: list[tuple[int, int, int]],
    ) -> None:
        topic, partition, offset = key[0], due.partition, due.offset
        if key in excused or (topic, partition, offset) in claimed or offset is None:
            return
        if any(p == partition and first <= offset < after for p, first, after in spans):
            return
        if offset >= self.run.positions.get(partition, 0):
            return  # not consumed
        if {(topic, partition), ("input", partition)} & self.found.incomplete:
            return
        self._add("reset-skip" if self._reset(due, self._skipped) else "lost", "input", partition, offset)

    def _positions(self, there: dict[tuple[str, Any], list[Row]], above: set[Any], short: set[int]) -> None:
        for row in (row for key in above for row in there.get(key, ())):
            coming = [
                each["position"]
                for each in self.run.commits
                if each["fate"] == "open"
                and transaction_of(each) == transaction_of(row)
                and each["partition"] == row["source_partition"]
            ]
            if row["source_offset"] is None or row["source_offset"] >= max(coming, default=0):
                self._add("offset-divergence", *place_of(row))
        for each in self.run.partitions:
            beyond = self.run.positions.get(each["partition"], 0) > each["high_watermark"]
            if each["topic"].removeprefix(self.run.prefix) == "input" and beyond and each["partition"] not in short:
                self._add("offset-divergence", "input", each["partition"], each["high_watermark"])

    def _apart(self, rows: list[Row]) -> None:
        """Outputs whose own transaction committed no position behind their input."""
        told: dict[tuple[Any, ...], int] = {}
        for commit in self.run.commits:
            if commit["fate"] in ("visible", "open") and None not in transaction_of(commit):
                owner = *transaction_of(commit), commit["partition"]
                told[owner] = max(told.get(owner, 0), commit["position"])
        for row in rows:
            position = told.get((*transaction_of(row), row["source_partition"]))
            if position is None or row["source_offset"] is None or row["source_offset"] >= position:
                self._add("offset-divergence", *place_of(row))

    def _back(self) -> None:
        """Positions of a worker's transaction behind those of a later one, and lower."""
        before: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for commit in sorted(self.run.commits, key=lambda each: int(each["offset"])):
            if commit["fate"] != "visible" or commit["worker"] is None:
                continue
            mine = before[commit["partition"], commit["worker"], commit["incarnation"]]
            if (
                any(each["transaction"] > commit["transaction"] for each in mine)
                and any(each["position"] > commit["position"] for each in mine)
                and (commit["partition"], commit["offset"]) not in self.late
            ):
                self._add("offset-divergence", "input", commit["partition"], commit["position"])
            mine.append(commit)

    def _without_outputs(self, suspects: list["Due"]) -> None:
        """Positions of transactions of which nothing else is visible, and that never came to commit or had outputs."""
        seen = {transaction_of(row) for row in self.run.outputs}
        for commit in (each for each in self.run.commits if each["fate"] == "visible"):
            owner, partition = transaction_of(commit), commit["partition"]
            if owner not in (self.never | self.had) - seen or (partition, commit["offset"]) in self.late:
                continue
            spans = [
                event["sources"][str(partition)]
                for event in self.run.events
                if str(partition) in event.get("sources", {}) and told_by(event) == owner
            ]
            if not any(
                each.partition == partition and each.highest is not None and first <= each.highest < after
                for each in suspects
                for first, after in spans or [(0, commit["position"])]
            ):
                self._add("offset-divergence", "input", partition, commit["position"])

    def _order(self, rows: list[Row]) -> None:
        before: dict[tuple[str, int, int], int] = {}
        for row in sorted(rows, key=lambda row: int(row["offset"])):
            lane = row["topic"], row["partition"], row["source_partition"]
            if row["source_offset"] < before.get(lane, -1):
                self._add("reordered", *place_of(row))
            before[lane] = row["source_offset"]

    def _marks(self) -> Iterator[Row]:
        return (mark for e in self.run.events if e["event"] == "records-deleted" for mark in e["partitions"])

    def _reset(self, due: "Due", explains: Callable[[Row, int], bool]) -> bool:
        return any(
            mark["partition"] == due.partition and due.offset is not None and explains(mark, due.offset)
            for mark in self._marks()
        )

    def _skipped(self, mark: Row, offset: int) -> bool:
        return bool(mark["position"] <= offset < mark["low_watermark"])

    def _reprocessed(self, mark: Row, offset: int) -> bool:
        went_back = any(
            e["event"] == "position-reset" and e["partition"] == mark["partition"] and e["found"] < e["expected"]
            for e in self.run.events
        )
        return bool(went_back and mark["low_watermark"] <= offset < mark["position"])


class Due:
    """What is due of one number on one topic, with one digest: as a rule, of one input."""

    def __init__(self) -> None:
        self.count = self.least = 0
        self.places: list[tuple[int, int | None]] = []

    def add(self, row: Row, least: int) -> None:
        self.count, self.least = self.count + 1, self.least + least
        self.places.append((row["partition"], row["offset"]))

    @classmethod
    def of(cls, several: Iterable["Due"]) -> "Due":
        whole = cls()
        for each in several:
            whole.count, whole.places = whole.count + each.count, whole.places + each.places
        return whole

    @property
    def partition(self) -> int:
        return max(partition for partition, _ in self.places)

    @property
    def offset(self) -> int | None:
        """The last one's in that partition."""
        return max(
            (offset for partition, offset in self.places if partition == self.partition),
            key=lambda offset: -1 if offset is None else offset,
        )

    @property
    def highest(self) -> int | None:
        return max((offset for _, offset in self.places if offset is not None), default=None)
