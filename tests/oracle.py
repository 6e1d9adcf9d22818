"""The second oracle: what must be found in a small run, by sets and dictionaries, one record at a time.

Slow and plain on purpose. It shares no code with the verifiers; where the two differ, one of them is wrong.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from tests.packing import Found, Place
from tests.rundata import Row, RunData

Transaction = tuple[int, int, int]


class Oracle:
    """`topics`: the outputs that each input must have, one record on each, in the partition of the input."""

    def __init__(self, run: RunData, topics: tuple[str, ...]) -> None:
        self.run, self.topics = run, topics
        self.found = Found()
        self.start: dict[tuple[str, int], int] = {}
        self.log: dict[Place, Row] = {}
        for each in run.partitions:
            topic = each["topic"].removeprefix(run.prefix)
            self.start[topic, each["partition"]] = each["start"]
            for batch in run.batches:
                if (batch["topic"], batch["partition"], batch["broker"]) == (
                    each["topic"], each["partition"], each["leader"]
                ) and batch["last"] >= each["start"]:  # fmt: skip
                    for offset in range(batch["first"], batch["last"] + 1):
                        self.log[topic, each["partition"], offset] = batch

    def judge(self) -> Found:
        self._complete()
        explained: set[Place] = set()
        excused: set[tuple[str, int | None]] = set()
        spans: list[tuple[int, int, int]] = []
        for rows, torn in ((self._aborted(), ()), self._torn(), (self._zombies(), ()), (self._readers(), ())):
            explained |= {_place(row) for row in rows}
            excused |= {(row["topic"], row["number"]) for row in rows}
            spans += [(int(p), *span) for event in torn for p, span in event["sources"].items()]
        lost, strangers = self._inputs()
        numbers = {row["number"] for row in lost} | {row["found"] for row in lost}
        broken = [row for row in self.run.outputs if row["number"] is not None and row["number"] in numbers]
        explained |= {_place(row) for row in broken}
        excused |= {(row["topic"], row["number"]) for row in broken}
        spans += [(row["partition"], row["offset"], row["offset"] + 1) for row in lost]
        standing = [row for row in self.run.outputs if _place(row) not in explained]
        self._count(standing, excused, spans, strangers, {row["partition"] for row in lost})
        self._hung_and_replicas()
        return self.found

    def _add(self, cls: str, *place: Any) -> None:
        self.found.findings.setdefault(cls, set()).add(place)

    def _complete(self) -> None:
        for each in self.run.partitions:
            topic, partition = each["topic"].removeprefix(self.run.prefix), each["partition"]
            mine = [b for (t, p, o), b in self.log.items() if (t, p) == (topic, partition)
                    and each["start"] <= o < each["end"]]  # fmt: skip
            rows = self.run.inputs if topic == "input" else [r for r in self.run.outputs if r["topic"] == topic]
            seen = sum(row["partition"] == partition for row in rows)
            whole = (
                each["end"] == each["high_watermark"] and len(mine) == each["end"] - each["start"]
                and sum(b["fate"] == "visible" for b in mine) == seen and (topic == "input" or each["start"] == 0)
            )  # fmt: skip
            if not whole:
                self.found.incomplete.add((topic, partition))

    def _aborted(self) -> list[Row]:
        told: dict[Transaction, set[str]] = defaultdict(set)
        for event in self.run.events:
            if event["event"] in ("begin", "invoke", "outcome"):
                name = _worker(event), event["incarnation"], event["transaction"]
                told[name] |= {event["event"], event.get("type", "")}
        observed = [{**row, "topic": row["topic"].removeprefix(self.run.prefix)} for row in self.run.observed]
        rows = [row for row in [*self.run.outputs, *observed]
                if self.log.get(_place(row), {"fate": "visible"})["fate"] != "visible"]  # fmt: skip
        never = {t for t, said in told.items() if "invoke" not in said or "fail" in said}
        rows += [row for row in self.run.outputs if _transaction(row) in never]
        for row in rows:
            self._add("aborted-read", *_place(row))
        return rows

    def _torn(self) -> tuple[list[Row], list[Row]]:
        torn = []
        for event in self.run.events:
            if event["event"] != "invoke":
                continue
            parts = []
            for place, (count, first, last) in event["outputs"].items():
                topic, _, number = place.removeprefix(self.run.prefix).rpartition("/")
                partition = int(number)
                if (topic, partition) in self.found.incomplete or first < self.start[topic, partition]:
                    continue
                own = self.log.get((topic, partition, first), {})
                visible = sum(
                    batch["fate"] == "visible" and batch["producer_id"] == own.get("producer_id")
                    for offset in range(first, last + 1)
                    if (batch := self.log.get((topic, partition, offset))) and batch["control"] is None
                ) if own and own["control"] is None else 0  # fmt: skip
                parts.append((topic, partition, first, count, visible))
            seen = sum(min(count, visible) for *_, count, visible in parts)
            if 0 < seen < sum(count for *_, count, _ in parts):
                torn.append(event)
                for topic, partition, first, count, visible in parts:
                    if visible < count:
                        self._add("torn-transaction", topic, partition, first)
        ids = {(_worker(e), e["incarnation"], e["transaction"]) for e in torn}
        return [row for row in self.run.outputs if _transaction(row) in ids], torn

    def _zombies(self) -> list[Row]:
        late: set[Place] = set()
        highest: dict[tuple[str, int, int], int] = {}
        for (topic, partition, offset), batch in sorted(self.log.items(), key=lambda item: item[0]):
            producer = (topic, partition, batch["producer_id"])
            if batch["fate"] == "visible" and batch["producer_epoch"] < highest.get(producer, -1):
                late.add((topic, partition, offset))
                self._add("zombie-write", topic, partition, batch["first"])
            highest[producer] = max(highest.get(producer, -1), batch["producer_epoch"])
        rows = [row for row in self.run.outputs if _place(row) in late]
        self.moved: set[int] = set()
        for partition in {commit["partition"] for commit in self.run.commits}:
            rows += self._zombie_positions(partition)
        return rows

    def _zombie_positions(self, partition: int) -> Iterator[Row]:
        assigned = [(_worker(e), e["incarnation"]) for e in sorted(self.run.events, key=lambda e: float(e.get("t", 0)))
                    if e["event"] == "assigned" and partition in e["partitions"]]  # fmt: skip
        visible = [c for c in sorted(self.run.commits, key=lambda c: int(c["offset"]))
                   if c["partition"] == partition and c["fate"] == "visible"]  # fmt: skip
        place, before, wrong = 0, None, False
        for commit in [c for c in visible if assigned and c["worker"] is not None]:
            owner = commit["worker"], commit["incarnation"]
            if owner != before:
                later = [i for i in range(place, len(assigned)) if assigned[i] == owner]
                wrong, place = not later, later[0] if later else place
            before = owner
            if wrong:
                self._add("zombie-write", "input", partition, commit["position"])
                yield from (row for row in self.run.outputs if _transaction(row) == _transaction(commit))
        if wrong and visible[-1]["worker"] is not None:
            self.moved.add(partition)

    def _readers(self) -> list[Row]:
        at_rest = {_place(row): row for row in self.run.outputs}
        found = []
        for observed in self.run.observed:
            row = {**observed, "topic": observed["topic"].removeprefix(self.run.prefix)}
            place, there = _place(row), at_rest.get(_place(row))
            if place in self.found.findings.get("aborted-read", set()) or row["offset"] < self.start[place[:2]]:
                continue
            if there is None and place[:2] in self.found.incomplete:
                continue
            if there is None or there["digest"] != row["digest"]:
                self._add("inconsistent-read", *place)
                found += [row] if there is None else [row, there]
        return found

    def _inputs(self) -> tuple[list[Row], list[Row]]:
        log = {(row["partition"], row["offset"]): row for row in self.run.inputs}
        lost = []
        for row in self.run.ledger:
            place = row["partition"], row["offset"]
            if row["offset"] is None or row["offset"] < self.start["input", row["partition"]]:
                continue
            there = log.get(place)
            if there is None and ("input", row["partition"]) in self.found.incomplete:
                continue
            if there is None or there["digest"] != row["digest"]:
                lost.append({**row, "found": there and there["number"]})
                self._add("input-lost", "input", *place)
        known = {(row["partition"], row["offset"], row["digest"]) for row in self.run.ledger}
        info = {(row["number"], row["digest"]) for row in self.run.ledger if row["offset"] is None}
        strangers = [row for row in self.run.inputs if (row["partition"], row["offset"], row["digest"]) not in known
                     and (row["number"], row["digest"]) not in info]  # fmt: skip
        return lost, strangers

    def _count(
        self, standing: list[Row], excused: set[tuple[str, int | None]], spans: list[tuple[int, int, int]],
        strangers: list[Row], short: set[int],
    ) -> None:  # fmt: skip
        log = {row["number"]: row for row in self.run.inputs}
        truth = [{**row, "least": 1} for row in strangers]
        for row in self.run.ledger:
            held = log.get(row["number"]) if row["offset"] is None else None
            place = {"partition": held["partition"], "offset": held["offset"]} if held else {}
            truth.append({**row, **place, "least": int(row["offset"] is not None or held is not None)})
        due = {(topic, row["number"]): row for row in truth for topic in self.topics}
        there: dict[tuple[str, Any], list[Row]] = defaultdict(list)
        for row in standing:
            there[row["topic"], row["number"]].append(row)
        intact = {key: [row for row in rows if key in due and row["digest"] == due[key]["digest"]]
                  for key, rows in there.items()}  # fmt: skip
        missing = {key for key, row in due.items() if len(intact.get(key, ())) < row["least"]}
        places = {(topic, due[topic, number]["partition"], due[topic, number]["offset"]) for topic, number in missing}
        claimed, bad = set(), set()
        for key, rows in there.items():
            for row in rows:
                claims = row["topic"], row["source_partition"], row["source_offset"]
                cls = self._cls(row, due.get(key), intact[key], claims in places)
                if row not in intact[key]:
                    claimed.add(claims)
                if cls:
                    self._add(cls, *_place(row))
                    bad.add(key)
        for topic, number in missing:
            self._missing(topic, due[topic, number], claimed, excused, spans)
        above = {key for key, row in due.items() if row["offset"] is not None
                 and row["offset"] >= self.run.positions.get(row["partition"], 0)}  # fmt: skip
        self._positions(there, {key for key in above if due[key]["partition"] not in self.moved}, short)
        suspects = bad | missing | above
        self._order([row for row in standing if (row["topic"], row["number"]) not in suspects])

    def _cls(self, row: Row, due: Row | None, intact: list[Row], claims_missing: bool) -> str | None:
        if row not in intact:
            return "corrupted" if due or claims_missing else "phantom"
        assert due is not None
        if len(intact) > 1:
            return "reset-reprocess" if self._reset(due, self._reprocessed) else "duplicate"
        header = row["source_partition"] == due["partition"] and due["offset"] in (None, row["source_offset"])
        return None if header and row["partition"] == due["partition"] else "corrupted"

    def _missing(
        self, topic: str, due: Row, claimed: set[Any], excused: set[tuple[str, int | None]],
        spans: list[tuple[int, int, int]],
    ) -> None:  # fmt: skip
        partition, offset = due["partition"], due["offset"]
        if (topic, due["number"]) in excused or (topic, partition, offset) in claimed:
            return
        if any(p == partition and first <= offset < after for p, first, after in spans):
            return
        if offset >= self.run.positions.get(partition, 0):
            return  # not consumed
        if {(topic, partition), ("input", partition)} & self.found.incomplete:
            return
        self._add("reset-skip" if self._reset(due, self._skipped) else "lost", "input", partition, offset)

    def _positions(self, there: dict[tuple[str, Any], list[Row]], above: set[Any], short: set[int]) -> None:
        for key in above:
            for row in there.get(key, ()):
                self._add("offset-divergence", *_place(row))
        for each in self.run.partitions:
            beyond = self.run.positions.get(each["partition"], 0) > each["high_watermark"]
            if each["topic"].removeprefix(self.run.prefix) == "input" and beyond and each["partition"] not in short:
                self._add("offset-divergence", "input", each["partition"], each["high_watermark"])

    def _order(self, rows: list[Row]) -> None:
        before: dict[tuple[str, int, int], int] = {}
        for row in sorted(rows, key=lambda row: int(row["offset"])):
            lane = row["topic"], row["partition"], row["source_partition"]
            if row["source_offset"] < before.get(lane, -1):
                self._add("reordered", *_place(row))
            before[lane] = row["source_offset"]

    def _hung_and_replicas(self) -> None:
        for each in self.run.open_transactions:
            if each["known_as"] is None:
                self._add("hung-transaction", each["topic"].removeprefix(self.run.prefix), each["partition"],
                          each["start_offset"])  # fmt: skip
        same = ("first", "last", "producer_id", "producer_epoch", "sequence", "crc")
        for each in self.run.partitions:
            held: Counter[tuple[Any, ...]] = Counter()
            for batch in {tuple(b[key] for key in (*same, "broker")) for b in self.run.batches
                          if (b["topic"], b["partition"]) == (each["topic"], each["partition"])
                          and b["last"] >= each["start"] and b["first"] < each["high_watermark"]}:  # fmt: skip
                held[batch[:-1]] += 1
            for batch, brokers in held.items():
                if brokers != 3:
                    topic = each["topic"].removeprefix(self.run.prefix)
                    self._add("replica-divergence", topic, each["partition"], batch[0])

    def _marks(self) -> Iterator[Row]:
        return (mark for e in self.run.events if e["event"] == "records-deleted" for mark in e["partitions"])

    def _reset(self, due: Row, explains: Callable[[Row, int], bool]) -> bool:
        return any(mark["partition"] == due["partition"] and due["offset"] is not None and explains(mark, due["offset"])
                   for mark in self._marks())  # fmt: skip

    def _skipped(self, mark: Row, offset: int) -> bool:
        return bool(mark["position"] <= offset < mark["low_watermark"])

    def _reprocessed(self, mark: Row, offset: int) -> bool:
        went_back = any(e["event"] == "position-reset" and e["partition"] == mark["partition"]
                        and e["found"] < e["expected"] for e in self.run.events)  # fmt: skip
        return bool(went_back and mark["low_watermark"] <= offset < mark["position"])


def _place(row: Row) -> Place:
    return row["topic"], row["partition"], row["offset"]


def _transaction(row: Row) -> tuple[Any, ...]:
    return row["worker"], row["incarnation"], row["transaction"]


def _worker(event: Row) -> int:
    return int(event["source"].removeprefix("worker-"))
