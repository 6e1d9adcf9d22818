"""Nothing is committed by a producer epoch, or by a group member, after its successor's: zombie-write."""

from collections import defaultdict

from tests.oracle.case import Case, owner_of, place_of
from tests.oracle.logs import OFFSETS
from tests.oracle.stages import Commit, Stage
from tests.oracle.told import Process
from tests.packing import Place


class Zombies:
    """`moved`: partitions, with the topic, in which a zombie's is the last committed offset."""

    def __init__(self, case: Case, stages: list[Stage]) -> None:
        self.case = case
        self.moved: set[tuple[str, int]] = set()
        self._owners: set[tuple[object, ...]] = set()
        self._by_epoch()
        old = self._old_offsets()
        for stage in stages:
            for partition in sorted({each.partition for each in stage.commits}):
                self._offsets(stage, partition, old)
        case.explain(row for row in case.run.outputs if owner_of(row) in self._owners)

    def _by_epoch(self) -> None:
        """Committed batches behind a batch or marker of a higher epoch of their producer id."""
        late: set[tuple[str, int, int, int]] = set()
        for log in self.case.judged():
            highest: dict[int, int] = {}
            for batch in log.batches:
                if batch.producer < 0:
                    continue
                if batch.fate == "visible" and batch.epoch < highest.get(batch.producer, -1):
                    self.case.add("zombie-write", log.topic, log.partition, batch.first)
                    late.add((log.topic, log.partition, batch.first, batch.last))
                highest[batch.producer] = max(batch.epoch, highest.get(batch.producer, -1))
        if late:
            self.case.explain(row for row in self.case.run.outputs if _within(place_of(row), late))

    def _old_offsets(self) -> set[tuple[int, int]]:
        """Batches of committed offsets, by log and first offset, behind a higher epoch of their producer id."""
        old = set()
        for log in (each for each in self.case.logs.values() if each.topic == OFFSETS):
            highest: dict[int, int] = {}
            for batch in log.batches:
                if batch.producer >= 0 and batch.fate == "visible" and batch.epoch < highest.get(batch.producer, -1):
                    old.add((log.partition, batch.first))
                highest[batch.producer] = max(batch.epoch, highest.get(batch.producer, -1))
        return old

    def _offsets(self, stage: Stage, partition: int, old: set[tuple[int, int]]) -> None:
        visible = stage.visible(partition)
        wrong = {
            each.at for each in visible if each.batch is not None and (each.log, each.batch.first) in old
        } | self._outdated(stage, partition, [each for each in visible if each.owner[0] is not None])
        for each in visible:
            if each.at in wrong:
                self.case.add("zombie-write", stage.source, partition, each.position)
                self.case.late.add((each.log, each.at))
                self._owners.add(each.owner)
        if visible and visible[-1].at in wrong:
            self.moved.add((stage.source, partition))

    def _outdated(self, stage: Stage, partition: int, visible: list[Commit]) -> set[int]:
        """Offsets of members that no longer had the partition."""
        if self.case.pipeline.fixed:
            return _of_earlier_incarnations(visible)
        told = [
            (at, process)
            for at, process, partitions in self.case.told.assigned
            if partition in partitions and self.case.pipeline.stage_of(process[0]) == stage.number
        ]
        if not visible:
            return set()
        if not told and stage.number:  # a second service's assignments are not always told
            return set()
        if not told:
            self.case.wonder("indeterminate", "nobody-assigned", f"{stage.source}/{partition}")
            return set()
        silent = {each.owner[:2] for each in visible} - {process for _, process in told}
        for process in silent:
            self.case.wonder("indeterminate", "not-assigned", f"worker-{process[0]}.{process[1]}")
        return self._after_successors([each for each in visible if each.owner[:2] not in silent], told)

    def _after_successors(self, commits: list[Commit], told: list[tuple[float, Process]]) -> set[int]:
        """Each member that goes on must have been assigned the partition behind the assignment of the one before."""
        wrong, place, before, outdated = set[int](), 0, None, False
        for commit in commits:
            process = commit.owner[:2]
            if process != before:
                transaction = self.case.told.transactions.get(commit.owner)
                began = transaction.began if transaction else None
                mine = [
                    number
                    for number in range(place, len(told))
                    if told[number][1] == process and told[number][0] <= (float("inf") if began is None else began)
                ]
                outdated = not mine
                place = mine[0] if mine else place
            before = process
            if outdated and self.case.told.told_whole(process):
                wrong.add(commit.at)
        return wrong


def _of_earlier_incarnations(commits: list[Commit]) -> set[int]:
    wrong, highest = set[int](), defaultdict[int, int](int)
    for commit in commits:
        worker, incarnation, _ = commit.owner
        if incarnation < highest[worker]:
            wrong.add(commit.at)
        highest[worker] = max(incarnation, highest[worker])
    return wrong


def _within(place: Place, spans: set[tuple[str, int, int, int]]) -> bool:
    return any(place[:2] == (topic, partition) and first <= place[2] <= last for topic, partition, first, last in spans)
