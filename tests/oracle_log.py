"""The second oracle, its first half: what log, history and readers say, before outputs are counted."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from tests.packing import Found, Place
from tests.rundata import Row, RunData, worker_of

Transaction = tuple[int, int, int]


class LogOracle:
    """`topics`: the outputs that each input must have, one record on each, in the partition of the input."""

    def __init__(self, run: RunData, topics: tuple[str, ...]) -> None:
        self.run, self.topics = run, topics
        self.found = Found()
        self.start: dict[tuple[str, int], int] = {}
        self.end: dict[tuple[str, int], int] = {}
        self.log: dict[Place, Row] = {}
        self.first: dict[tuple[int, int], Row] = {}
        for row in sorted(run.inputs, key=lambda row: (int(row["partition"]), int(row["offset"]))):
            self.first.setdefault((row["number"], row["digest"]), row)
        for each in run.partitions:
            topic = each["topic"].removeprefix(run.prefix)
            self.start[topic, each["partition"]] = each["start"]
            self.end[topic, each["partition"]] = each["high_watermark"]
            for batch in run.batches:
                if (batch["topic"], batch["partition"], batch["broker"]) == (
                    each["topic"],
                    each["partition"],
                    each["leader"],
                ) and batch["last"] >= each["start"]:
                    for offset in range(batch["first"], batch["last"] + 1):
                        self.log[topic, each["partition"], offset] = batch

    def _add(self, cls: str, *place: Any) -> None:
        self.found.findings.setdefault(cls, set()).add(place)

    def _complete(self) -> None:
        for each in self.run.partitions:
            topic, partition = each["topic"].removeprefix(self.run.prefix), each["partition"]
            mine = [
                b
                for (t, p, o), b in self.log.items()
                if (t, p) == (topic, partition) and each["start"] <= o < each["end"]
            ]
            rows = self.run.inputs if topic == "input" else [r for r in self.run.outputs if r["topic"] == topic]
            seen = sum(row["partition"] == partition for row in rows)
            whole = (
                each["end"] == each["high_watermark"]
                and len(mine) == each["end"] - each["start"]
                and sum(b["fate"] == "visible" for b in mine) == seen
                and (topic == "input" or each["start"] == 0)
            )
            if not whole:
                self.found.incomplete.add((topic, partition))

    def _aborted(self) -> list[Row]:
        told: dict[Transaction, set[str]] = defaultdict(set)
        for event in self.run.events:
            if event["event"] in ("begin", "invoke", "outcome"):
                told[told_by(event)] |= {event["event"], event.get("type", "")}
        observed = [{**row, "topic": row["topic"].removeprefix(self.run.prefix)} for row in self.run.observed]
        rows = [
            row
            for row in [*self.run.outputs, *observed]
            if self.log.get(place_of(row), {"fate": "visible"})["fate"] != "visible"
        ]
        self.never = {t for t, said in told.items() if "invoke" not in said or "fail" in said}
        went_on = {(e["source"], e["incarnation"], e["fault"]) for e in self.run.events if e["event"] == "went-on"}
        self.never |= {
            told_by(e)
            for e in self.run.events
            if e["event"] == "at-phase"
            and e["phase"] == "before-commit"
            and (e["source"], e["incarnation"], e["fault"]) not in went_on
        }
        rows += [row for row in self.run.outputs if transaction_of(row) in self.never]
        rows += [row for row in self.run.outputs if self._seen_early(row, observed)]
        for row in rows:
            self._add("aborted-read", *place_of(row))
        return rows

    def _seen_early(self, row: Row, observed: list[Row]) -> bool:
        """Whether the observer saw an output before its worker called commit, where its manifest can be judged."""
        called = [e for e in self.run.events if e["event"] == "invoke" and told_by(e) == transaction_of(row)]
        seen = [each["at"] for each in observed if place_of(each) == place_of(row)]
        here = row["topic"], row["partition"]
        parts = [e["outputs"].get(f"{self.run.prefix}{row['topic']}/{row['partition']}", (0, 0, -1)) for e in called]
        told = any(first <= row["offset"] <= last and first >= self.start[here] for _, first, last in parts)
        if not told or not seen or here in self.found.incomplete:
            return False
        return bool(min(seen) + 0.001 < min(e["t"] for e in called))

    def _torn(self) -> tuple[list[Row], list[Row]]:
        torn = []
        self.had: set[Transaction] = set()
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
                visible = (
                    sum(
                        batch["fate"] == "visible" and batch["producer_id"] == own.get("producer_id")
                        for offset in range(first, last + 1)
                        if (batch := self.log.get((topic, partition, offset))) and batch["control"] is None
                    )
                    if own and own["control"] is None
                    else 0
                )
                parts.append((topic, partition, first, count, visible))
                self.had.add(told_by(event))
            seen = sum(min(count, visible) for *_, count, visible in parts)
            if 0 < seen < sum(count for *_, count, _ in parts):
                torn.append(event)
                for topic, partition, first, count, visible in parts:
                    if visible < count:
                        self._add("torn-transaction", topic, partition, first)
        ids = {told_by(event) for event in torn}
        return [row for row in self.run.outputs if transaction_of(row) in ids], torn

    def _zombies(self) -> list[Row]:
        late: set[Place] = set()
        highest: dict[tuple[str, int, int], int] = {}
        for (topic, partition, offset), batch in sorted(self.log.items(), key=lambda item: item[0]):
            producer = (topic, partition, batch["producer_id"])
            if batch["fate"] == "visible" and batch["producer_epoch"] < highest.get(producer, -1):
                late.add((topic, partition, offset))
                self._add("zombie-write", topic, partition, batch["first"])
            highest[producer] = max(highest.get(producer, -1), batch["producer_epoch"])
        rows = [row for row in self.run.outputs if place_of(row) in late]
        self.moved: set[int] = set()
        self.late: set[tuple[int, int]] = set()
        for partition in {commit["partition"] for commit in self.run.commits}:
            rows += self._zombie_positions(partition)
        return rows

    def _zombie_positions(self, partition: int) -> Iterator[Row]:
        told = sorted((e for e in self.run.events if e["event"] == "assigned"), key=lambda e: float(e["t"]))
        assigned = [(worker_of(e), e["incarnation"], e["t"]) for e in told if partition in e["partitions"]]
        began = {told_by(e): e["t"] for e in self.run.events if e["event"] == "begin"}
        old = {id(commit) for commit in self._of_older_epochs()}
        visible = [
            c
            for c in sorted(self.run.commits, key=lambda c: int(c["offset"]))
            if c["partition"] == partition and c["fate"] == "visible"
        ]
        place, before, wrong = 0, None, False
        for commit in visible:
            owner = commit["worker"], commit["incarnation"]
            if assigned and commit["worker"] is not None:
                if owner != before:
                    since = began.get(transaction_of(commit), float("inf"))
                    mine = [i for i in range(place, len(assigned)) if assigned[i][:2] == owner]
                    later = [i for i in mine if assigned[i][2] <= since]
                    wrong, place = not later, later[0] if later else place
                before = owner
            if (wrong and assigned and commit["worker"] is not None) or id(commit) in old:
                self._add("zombie-write", "input", partition, commit["position"])
                self.late.add((partition, commit["offset"]))
                yield from (row for row in self.run.outputs if transaction_of(row) == transaction_of(commit))
        if visible and (partition, visible[-1]["offset"]) in self.late:
            self.moved.add(partition)

    def _of_older_epochs(self) -> Iterator[Row]:
        """Visible commits behind one of a higher epoch of their producer, in the group's log."""
        highest: dict[int, int] = {}
        for commit in sorted(self.run.commits, key=lambda c: int(c["offset"])):
            if commit["producer_epoch"] < highest.get(commit["producer_id"], -1) and commit["fate"] == "visible":
                yield commit
            highest[commit["producer_id"]] = max(highest.get(commit["producer_id"], -1), commit["producer_epoch"])

    def _readers(self) -> list[Row]:
        at_rest = {place_of(row): row for row in self.run.outputs}
        found = []
        for observed in self.run.observed:
            row = {**observed, "topic": observed["topic"].removeprefix(self.run.prefix)}
            place, there = place_of(row), at_rest.get(place_of(row))
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
            if row["offset"] is None:
                here = "input", row["partition"]
                nowhere = row.get("acknowledged") and (row["number"], row["digest"]) not in self.first
                if nowhere and not self.start[here] and here not in self.found.incomplete:
                    lost.append({**row, "found": None})
                    self._add("input-lost", *here, self.end[here])
                continue
            if row["offset"] < self.start["input", row["partition"]]:
                continue
            there = log.get(place)
            if there is None and ("input", row["partition"]) in self.found.incomplete:
                continue
            if there is None or there["digest"] != row["digest"]:
                lost.append({**row, "found": there and there["number"]})
                self._add("input-lost", "input", *place)
        known = {(row["partition"], row["offset"], row["digest"]) for row in self.run.ledger}
        for row in self.run.ledger:
            there = self.first.get((row["number"], row["digest"]))
            if row["offset"] is None and there:
                known.add((there["partition"], there["offset"], there["digest"]))
        return lost, [row for row in self.run.inputs if (row["partition"], row["offset"], row["digest"]) not in known]

    def _hung_and_replicas(self) -> None:
        for each in self.run.open_transactions:
            if each["known_as"] is None:
                self._add(
                    "hung-transaction",
                    each["topic"].removeprefix(self.run.prefix),
                    each["partition"],
                    each["start_offset"],
                )
        same = ("first", "last", "producer_id", "producer_epoch", "sequence", "crc")
        for each in self.run.partitions:
            held: Counter[tuple[Any, ...]] = Counter()
            for batch in {
                tuple(b[key] for key in (*same, "broker"))
                for b in self.run.batches
                if (b["topic"], b["partition"]) == (each["topic"], each["partition"])
                and b["last"] >= each["start"]
                and b["first"] < each["high_watermark"]
            }:
                held[batch[:-1]] += 1
            for batch, brokers in held.items():
                if brokers != 3:
                    topic = each["topic"].removeprefix(self.run.prefix)
                    self._add("replica-divergence", topic, each["partition"], batch[0])


def place_of(row: Row) -> Place:
    return row["topic"], row["partition"], row["offset"]


def transaction_of(row: Row) -> tuple[Any, ...]:
    return row["worker"], row["incarnation"], row["transaction"]


def told_by(event: Row) -> Transaction:
    """The transaction that an event is about."""
    return worker_of(event), event["incarnation"], event["transaction"]
