"""Every input has its outputs, each once: lost, duplicate, phantom, corrupted, and what a reset explains of them."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from tests.oracle.case import Case, place_of
from tests.oracle.effects import Effects
from tests.oracle.inputs import Due, Inputs, Key
from tests.packing import Place
from tests.rundata import Row


class Counting:
    """`fitting` are the outputs that are right in themselves; `missing` what is due and is not there, whatever the
    reason is; `foreign` outputs of what the ledger may not know of."""

    def __init__(self, case: Case, inputs: Inputs, effects: Effects) -> None:
        self.case, self.inputs, self._effects = case, inputs, effects
        self.due = inputs.due
        self._from_lost_inputs()
        self.foreign: set[Place] = set()
        self._known = {(row["partition"], row["offset"]) for row in case.run.ledger if row["offset"] is not None}
        self._offsets: dict[tuple[str, int], set[int]] = defaultdict(set)  # of inputs with an output
        for row in case.run.outputs:
            if row["source_offset"] is not None:
                self._offsets[row["topic"], row["source_partition"]].add(row["source_offset"])
        rows: dict[Key, list[Row]] = defaultdict(list)
        for row in case.run.outputs:
            if place_of(row) not in case.explained:
                rows[row["topic"], row["number"]].append(row)
        self._rows = rows
        if not inputs.full:
            for key, several in rows.items():
                self._set_foreign_aside(key, several)
        there = {key: [row for row in several if place_of(row) not in self.foreign] for key, several in rows.items()}
        self.intact = {
            key: Counter(row["digest"] for row in several if row["digest"] in self.due.get(key, {}))
            for key, several in there.items()
        }
        self.missing = [
            (key, digest, each)
            for key, wanted in self.due.items()
            for digest, each in wanted.items()
            if self.intact.get(key, Counter())[digest] < each.least
        ]
        self._claimed: set[tuple[str, int | None, int | None]] = set()
        places = {(key[0], *place) for key, _, each in self.missing for place in each.places}
        for key, several in there.items():
            self._judge(key, several, places)
        self.lost: set[tuple[int, int | None]] = set()
        self._lose({(key, each.last()) for key, several in rows.items() if self.foreign for each in self._of(key)})
        self.there = there
        self.fitting = [row for several in there.values() for row in several if place_of(row) not in case.bad]
        if self.foreign:
            case.wonder("indeterminate", "foreign", len(self.foreign))
        if case.pipeline.identified:
            self._in_part()

    def touched(self) -> set[tuple[str, int]]:
        """Partitions with outputs that are missing, too many or wrong."""
        places = {place[:2] for place in self.case.bad} | {
            (key[0], to) for key, _, each in self.missing for to in each.to
        }
        if self.case.pipeline.placed:
            return places
        topics = {topic for topic, _ in places}
        return {(log.topic, log.partition) for log in self.case.judged() if log.topic in topics}

    def _in_part(self) -> None:
        """Inputs that nobody acknowledged, that the log is not known to have, and of which something came out."""
        there = Counter((row["topic"], row["number"]) for row in self.case.run.outputs)
        maybe = self.inputs.maybe()
        due: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for key, several in self.due.items():
            if key[1] in maybe:
                needed = sum(offset is None for each in several.values() for _, offset in each.places)
                due[key[1]].append((there[key], needed))
        for number, counts in due.items():
            if any(count for count, _ in counts) and any(count < needed for count, needed in counts):
                self.case.wonder("indeterminate", "in-part", number)

    def _of(self, key: Key) -> Iterable[Due]:
        return self.due.get(key, {}).values()

    def _from_lost_inputs(self) -> None:
        """Outputs of an input that the log lost, or of what stands there instead, are no other finding."""
        lost = self.inputs.lost
        numbers = {row["number"] for row in lost} | {row["found"] for row in lost}
        self.case.explain(
            row for row in self.case.run.outputs if row["number"] is not None and row["number"] in numbers
        )
        self._effects.lost_with |= {(row["partition"], row["offset"]) for row in lost if row["offset"] is not None}
        self.gone = {row["number"] for row in lost if row["offset"] is None}

    def _set_foreign_aside(self, key: Key, rows: list[Row]) -> None:
        """Ledger mode: outputs of a place in the input topic of which the ledger does not know what it holds.

        An input without an offset may be at one such place; further ones are of records that the ledger does not know.
        Of two outputs for such a place, at most as many as one input has can be right."""
        unplaced = [offset for each in self._of(key) for _, offset in each.places if offset is None]
        each = max((due.count for due in self._of(key)), default=1) // max(1, self._inputs(key))
        at: dict[tuple[int, int], list[Row]] = defaultdict(list)
        for row in rows:
            if self._unknown(row):
                at[row["source_partition"], row["source_offset"]].append(row)
        if len(at) <= (1 if unplaced else 0) * self._inputs(key):
            return
        for several in at.values():
            self.foreign |= {place_of(row) for row in several}
            if len(several) > max(1, each):
                for row in several:
                    self.case.add("duplicate", *place_of(row))
                    self.case.bad.add(place_of(row))

    def _inputs(self, key: Key) -> int:
        """How many inputs have this number, as far as the ledger knows."""
        return max(1, len({place for due in self._of(key) for place in due.places}))

    def _unknown(self, row: Row) -> bool:
        partition, offset = row["source_partition"], row["source_offset"]
        if partition is None or offset is None or (partition, offset) in self._known:
            return False
        log = self.case.logs.get(("input", partition))
        return log is not None and offset < log.high

    def _judge(self, key: Key, rows: list[Row], missing: set[tuple[str, int, int | None]]) -> None:
        wanted, to = self.due.get(key, {}), Counter((row["digest"], row["partition"]) for row in rows)
        for row in rows:
            claims = row["topic"], row["source_partition"], row["source_offset"]
            digest, due = row["digest"], wanted.get(row["digest"])
            cls = None
            if due is None:
                cls = "corrupted" if wanted or claims in missing else "phantom"
                self._claimed.add(claims)
            elif self.intact[key][digest] > due.count:
                cls = "reset-reprocess" if self._reprocessed(due) else "duplicate"
            elif self._misplaced(to[digest, row["partition"]], row, due) or not _made_of(row, due):
                cls = "corrupted"
            if cls:
                self.case.add(cls, *place_of(row))
                self.case.bad.add(place_of(row))

    def _misplaced(self, count: int, row: Row, due: Due) -> bool:
        """Whether a partition has more of these outputs than it should."""
        return self.case.pipeline.placed and count > due.to[row["partition"]]

    def _lose(self, maybe: set[tuple[Key, tuple[int, int | None]]]) -> None:
        case = self.case
        for key, digest, each in self.missing if case.pipeline.identified else ():
            topic, (partition, offset) = key[0], each.last()
            if key in case.excused or (topic, partition, offset) in self._claimed or key[1] in self.gone:
                continue
            if (partition, offset) in self._effects.lost_with or (key, (partition, offset)) in maybe:
                continue
            if offset is None:
                case.wonder("indeterminate", "missing", topic)
                continue
            if offset >= case.positions.get(partition, 0):
                case.wonder("stalled", "not-consumed", partition)
                continue
            got = Counter(row["partition"] for row in self._rows.get(key, ()) if row["digest"] == digest)
            short = [to for to, count in each.to.items() if got[to] < count]
            if not case.pipeline.placed:
                short = [log.partition for log in case.judged() if log.topic == topic]
            if not case.whole("input", partition) or not all(case.whole(topic, to) for to in short):
                case.wonder("indeterminate", "missing", f"{topic}/{partition}")
                continue
            self.lost.add((partition, offset))
            case.add("reset-skip" if self._skipped(topic, each) else "lost", "input", partition, offset)

    def _skipped(self, topic: str, due: Due) -> bool:
        """Whether a consumer that was sent to the log start left this input out, and all up to there."""
        partition, offset = due.last()
        if offset is None:
            return False
        return any(
            mark["position"] <= offset < mark["low_watermark"]
            and not any(offset < there < mark["low_watermark"] for there in self._read(topic, partition))
            for name, mark in self.case.told.marks()
            if name == "input" and mark["partition"] == partition
        )

    def _read(self, topic: str, partition: int) -> set[int]:
        """The offsets of a partition of the input that have an output on a topic."""
        return self._offsets[topic, partition]

    def _reprocessed(self, due: Due) -> bool:
        """Whether the input is between where a consumer went back to and the position at a delete."""
        partition, offset = due.last()
        back = [
            each["found"]
            for each in self.case.told.resets
            if each["partition"] == partition
            and each["found"] < each["expected"]
            and self.case.pipeline.stage_of(int(each["source"].removeprefix("worker-"))) == 0
        ]
        return offset is not None and any(
            max(mark["low_watermark"], min(back)) <= offset < mark["position"]
            for topic, mark in self.case.told.marks()
            if topic == "input" and mark["partition"] == partition and back
        )


def _made_of(row: Row, due: Due) -> bool:
    """Whether the header names an input of which this output is due."""
    return any(
        row["source_partition"] == partition and (offset is None or row["source_offset"] == offset)
        for partition, offset in due.places
    )
