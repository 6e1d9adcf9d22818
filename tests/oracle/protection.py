"""Outputs and committed offsets are in the transactions in which the pipeline claims to put them: unprotected."""

from collections import Counter, defaultdict
from typing import Any

from tests.oracle.case import Case
from tests.oracle.counting import Counting
from tests.oracle.logs import Batch, Log
from tests.oracle.stages import Commit, Stage, Written

Owner = tuple[Any, Any, Any]


def judge(case: Case, stages: list[Stage], counting: Counting) -> set[tuple[int, int]]:
    """Returns the unprotected committed offsets, by the partition of the groups' log and their offset there."""
    found: set[tuple[int, int]] = set()
    if not case.pipeline.claims_transactions:
        return found
    for log in case.judged():
        if log.topic in case.pipeline.topics:
            _bare_records(case, log)
    if not case.pipeline.claims_positions:
        return found
    fitting = {(row["topic"], row["partition"], row["offset"]) for row in counting.fitting}
    for stage in stages:
        commits = [
            each
            for each in stage.visible()
            if each.owner[0] is not None
            and (each.log, each.at) not in case.late
            and (each.batch is None or (each.log, each.batch.first) not in case.old)
        ]
        before = _before(stage)
        for each in commits:
            if each.span is None and each.position != before[each.log, each.at]:
                case.add("unprotected", stage.source, each.partition, each.position)
                found.add((each.log, each.at))
        last = stage is stages[-1]
        found |= _together(case, stage, [each for each in stage.written if not last or each.place in fitting], commits)
    return found


def _before(stage: Stage) -> dict[tuple[int, int], int]:
    """The committed offset of its partition before each commit, by the commit's place."""
    found, last = dict[tuple[int, int], int](), Counter[int]()
    for each in sorted(stage.visible(), key=lambda commit: commit.at):
        found[each.log, each.at] = last[each.partition]
        last[each.partition] = each.position
    return found


def _bare_records(case: Case, log: Log) -> None:
    """Records in batches that are not transactional."""
    between = log.topic == case.pipeline.between
    for batch in log.visible():
        if batch.span is None:
            for offset in range(max(batch.first, log.start), batch.last + 1):
                if between or (log.topic, log.partition, offset) in case.at_rest:
                    case.add("unprotected", log.topic, log.partition, offset)


def _together(case: Case, stage: Stage, written: list[Written], commits: list[Commit]) -> set[tuple[int, int]]:
    """What one transaction of a worker wrote and committed is in one transaction of the log: that of most of it."""
    mine: dict[Owner, list[tuple[tuple[str, int, int], tuple[int, int], Commit | None]]] = defaultdict(list)
    for record in written:
        log = case.logs.get(record.place[:2])
        decision = decision_of(log.at(record.place[2]) if log else None)
        if record.owner is not None and decision is not None:
            mine[record.owner].append((record.place, decision, None))
    for commit in commits:
        decision = decision_of(commit.batch)
        if commit.owner in mine and decision is not None:
            place = stage.source, commit.partition, commit.position
            mine[commit.owner].append((place, decision, commit))
    found = set()
    for held in mine.values():
        (own, _), *others = Counter(decision for _, decision, _ in held).most_common()
        for place, decision, whose in held if others else []:
            if decision != own:
                case.add("unprotected", *place)
                if whose is not None:
                    found.add((whose.log, whose.at))
    return found


def decision_of(batch: Batch | None) -> tuple[int, int] | None:
    """The coordinator's decision that ended the transaction of a visible batch."""
    return batch.span.decision if batch and batch.span and batch.fate == "visible" else None
