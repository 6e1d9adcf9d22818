"""Committed offsets and visible outputs tell of the same inputs: offset-divergence."""

from collections import defaultdict

from tests.oracle.case import Case
from tests.oracle.counting import Counting
from tests.oracle.effects import Effects
from tests.oracle.logs import OFFSETS
from tests.oracle.protection import decision_of
from tests.oracle.stages import Commit, Owner, Stage, Written, passed_on
from tests.oracle.zombies import Zombies
from tests.packing import Place


class Positions:
    """`bare` are committed offsets that are unprotected, which says enough of them."""

    def __init__(
        self,
        case: Case,
        stages: list[Stage],
        effects: Effects,
        zombies: Zombies,
        counting: Counting,
        bare: set[tuple[int, int]],
    ) -> None:
        self.bare = bare
        self.case, self.stages, self.effects = case, stages, effects
        self.zombies, self.counting = zombies, counting
        self.touched: set[tuple[str, int]] = set()  # partitions with outputs that no offset covers
        self.compacted = any(each["compacted"] for each in case.run.internal if each["topic"] == OFFSETS)
        fitting = {(row["topic"], row["partition"], row["offset"]) for row in counting.fitting}
        for stage in stages:
            self._beyond(stage)
            above = self._above(stage)
            if case.pipeline.claims_positions:
                good = self._good(stage, fitting)
                reported = self._without_effect(stage) | {owner for owner, _ in effects.torn}
                self._apart(stage, [each for each in good if each.place not in above], reported)
                self._back(stage)

    def _good(self, stage: Stage, fitting: set[Place]) -> list[Written]:
        """Records that no other finding explains."""
        if self.case.pipeline.between and stage.number == 0:
            made = {
                (self.case.pipeline.between, row["intermediate_partition"], row["intermediate_offset"])
                for row in self.counting.fitting
            }
            return [each for each in stage.written if each.place in made]
        return [each for each in stage.written if each.place in fitting]

    def _beyond(self, stage: Stage) -> None:
        short = {row["partition"] for row in self.counting.inputs.lost}
        for partition, position in stage.positions.items():
            log = self.case.logs.get((stage.source, partition))
            if log and position > log.high and not (stage.number == 0 and partition in short):
                self.case.add("offset-divergence", stage.source, partition, log.high)

    def _reached(self, stage: Stage) -> dict[int, int]:
        """How far the group is at rest; a second one by its log, since it may show another offset than its last."""
        return {each.partition: each.position for each in stage.visible()} if stage.number else stage.positions

    def _above(self, stage: Stage) -> set[Place]:
        """Outputs, at the end of the pipeline, made of what the group has not committed."""
        found = set()
        last, shown = stage is self.stages[-1], self._reached(stage)
        for row in (row for several in self.counting.there.values() for row in several):
            names = (
                ("source_partition", "source_offset")
                if stage.number == 0
                else (
                    "intermediate_partition",
                    "intermediate_offset",
                )
            )
            partition, offset = row[names[0]], row[names[1]]
            if stage.number == 0:
                partition, offset = self._due_at(row["topic"], row["number"], partition, offset)
            if partition is None or offset is None or offset < shown.get(partition, 0):
                continue
            place = (
                (row["topic"], row["partition"], row["offset"])
                if last
                else (self.case.pipeline.between, row["intermediate_partition"], row["intermediate_offset"])
            )
            found.add(place)
            self.touched.add((row["topic"], row["partition"]))
            if (stage.source, partition) in self.zombies.moved or self._coming(stage, place, partition, row[names[1]]):
                continue
            self.case.add("offset-divergence", row["topic"], row["partition"], row["offset"])
        return found

    def _due_at(
        self, topic: str, number: int | None, partition: int | None, offset: int | None
    ) -> tuple[int | None, int | None]:
        """Where the last input of a number is; without one, what the header says does not count."""
        places = [place for each in self.counting.due.get((topic, number), {}).values() for place in each.places]
        known = [place for place in places if place[1] is not None]
        return max(known, key=lambda place: place[1] or 0) if known else (None, None)

    def _coming(self, stage: Stage, place: Place, partition: int, offset: int | None) -> bool:
        """Whether the offset that is missing is in the output's transaction, which waits for its marker there."""
        written = next((each for each in stage.written if each.place == place), None)
        return written is not None and any(
            each.fate == "open"
            and each.partition == partition
            and each.owner == written.owner
            and offset is not None
            and offset < each.position
            for each in stage.commits
        )

    def _apart(self, stage: Stage, written: list[Written], reported: set[Owner]) -> None:
        """Records whose input's offset was first committed in another transaction than their own, and than those that
        are reported themselves."""
        if self.compacted:
            return
        unprotected = self.case.found("unprotected")
        covers: dict[int, list[Commit]] = defaultdict(list)  # those that go further than any before them
        for each in stage.commits:
            if each.fate in ("visible", "open") and each.owner[0] is not None:
                mine = covers[each.partition]
                if not mine or each.position > mine[-1].position:
                    mine.append(each)
        for record in written:
            if record.partition is None or record.offset is None:
                continue
            first = next((each for each in covers[record.partition] if each.position > record.offset), None)
            if first is None or record.place in unprotected or first.owner in reported:
                continue
            if first.span is not None and first.span.decision is None:  # nobody knows in which transaction it is
                continue
            if self._differ(record, first) and (first.log, first.at) not in self.bare | self.case.late:
                self.case.add("offset-divergence", *record.place)

    def _differ(self, record: Written, commit: Commit) -> bool:
        """Whether a record is in another transaction than a committed offset; of a record that nobody claims, the log
        says so."""
        if record.owner is not None:
            return record.owner != commit.owner
        held = decision_of(self.case.logs[record.place[:2]].at(record.place[2])), decision_of(commit.batch)
        return None not in held and held[0] != held[1]

    def _back(self, stage: Stage) -> None:
        """Committed offsets below an earlier one, unless their transaction did the inputs again."""
        again = {
            each.owner
            for each in stage.written
            if each.place in self.case.found("duplicate") | self.case.found("reset-reprocess")
        }
        highest: dict[int, int] = {}
        last = {each.partition: each for each in stage.visible()}  # outputs above it are findings themselves
        for each in stage.visible():
            named = (each.log, each.at) in self.case.late | self.bare
            if named or each.owner[0] is None or each is last[each.partition]:
                continue
            if each.position < highest.get(each.partition, -1) and each.owner not in again:
                self.case.add("offset-divergence", stage.source, each.partition, each.position)
            highest[each.partition] = max(each.position, highest.get(each.partition, -1))

    def _without_effect(self, stage: Stage) -> set[Owner]:
        """Offsets of transactions that were given up, or of which no record is visible; returns these transactions."""
        reported = set()
        effects, last = self.effects, stage is self.stages[-1]
        seen = {each.owner for each in stage.written if each.owner is not None}
        dealt_with = self._explained(last=last)
        explained = {each.owner for each in stage.written if each.place in dealt_with}
        had = {owner for owner, parts in effects.parts.items() if not any(visible for *_, visible in parts)}
        for each in stage.visible():
            if (each.log, each.at) in self.case.late or each.owner[0] is None:
                continue
            idle = each.owner in had and each.owner not in seen
            given_up = each.owner in effects.never and each.owner not in (seen if last else explained)
            if (idle or given_up) and not self._lost_with(each, stage):
                self.case.add("offset-divergence", stage.source, each.partition, each.position)
                reported.add(each.owner)
        return reported

    def _explained(self, *, last: bool) -> set[Place]:
        """Records of the stage that a more telling finding has dealt with, itself or what was made of them."""
        explained, between = self.case.explained, self.case.pipeline.between
        if last:
            return explained
        return {
            (between, row["intermediate_partition"], row["intermediate_offset"])
            for row in self.case.run.outputs
            if (row["topic"], row["partition"], row["offset"]) in explained
        }

    def _lost_with(self, commit: Commit, stage: Stage) -> bool:
        """Whether inputs that the transaction read have no output: then they are what is wrong."""
        told = self.case.told.transactions.get(commit.owner)
        spans = [
            span for call in (told.spans if told else []) for p, span in call.items() if int(p) == commit.partition
        ]
        missing = {each.last() for _, _, each in self.counting.missing}
        if stage.number:
            missing = {between for between, source in passed_on(self.case).items() if source in missing}
        return any(
            partition == commit.partition and offset is not None and first <= offset < after
            for partition, offset in missing
            for first, after in spans or [(0, commit.position)]
        )
