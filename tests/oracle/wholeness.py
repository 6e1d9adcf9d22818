"""Which partitions are whole, so that something can be said to be missing there; and what else is not known.

Between start and end, the leader's batches must account for each offset, and the reader must have seen as many records
as a read_committed reader can. Outputs begin at offset 0; where a fault deleted records, its low watermark is as far up
as a log may start.
"""

from collections import Counter

from tests.oracle.case import Case
from tests.oracle.logs import OFFSETS, Log
from tests.oracle.stages import Stage


def judge(case: Case, stages: list[Stage]) -> None:
    seen = Counter((row["topic"], row["partition"]) for row in case.run.outputs)
    seen.update(("input", row["partition"]) for row in case.run.inputs)
    for log in case.judged():
        _partition(case, log, seen[log.topic, log.partition])
    for name in case.run.moved:
        case.wonder("indeterminate", "moved", case.own(name))
    _groups(case, stages)


def _partition(case: Case, log: Log, seen: int) -> None:
    here, about = (log.topic, log.partition), f"{log.topic}/{log.partition}"
    wrong = set()
    if log.end != log.high:
        wrong.add("last-stable-offset")
    if log.covered() != log.end - log.start:
        wrong.add("offsets")
    if _was_read(case, log.topic) and log.readable() != seen:
        wrong.add("visible")
    if any(batch.intact is False for batch in log.batches):
        wrong.add("damaged")
    if log.start > 0 and log.topic in case.pipeline.judged:
        wrong.add("start")
    elif log.start > _deleted(case, log):
        wrong.add("start")
        case.wonder("indeterminate", "start", about)
        if log.topic == "input":
            wrong.discard("start")  # what is above it can be judged
    for rule in wrong:
        case.wonder("indeterminate", rule, about)
    if wrong:
        case.verdict.incomplete.add(here)


def _was_read(case: Case, topic: str) -> bool:
    return topic in case.pipeline.judged or (topic == "input" and case.run.mode == "full")


def _deleted(case: Case, log: Log) -> int:
    """How far up a fault's delete lets a log start."""
    return max(
        (
            mark["low_watermark"]
            for topic, mark in case.told.marks()
            if (topic, mark["partition"]) == (log.topic, log.partition)
        ),
        default=0,
    )


def _groups(case: Case, stages: list[Stage]) -> None:
    """The groups' logs, and the offsets that the groups show."""
    compacted = {each["partition"]: each["compacted"] for each in case.run.internal if each["topic"] == OFFSETS}
    used = {each.log for stage in stages for each in stage.commits}
    for (topic, partition), log in case.logs.items():
        if topic != OFFSETS or partition not in used:
            continue
        about = f"{OFFSETS}/{partition}"
        if compacted.get(partition):
            case.wonder("indeterminate", "compacted", about)
        if log.end != log.high:
            case.wonder("stalled", "group-not-stable", about)
        if any(batch.intact is False for batch in log.batches):
            case.wonder("indeterminate", "damaged", about)
    for stage in stages:
        for partition in {each.partition for each in stage.commits} | set(stage.positions):
            last = stage.visible(partition)
            in_log = last[-1].position if last else None
            if stage.positions.get(partition) != in_log and not case.pipeline.in_database:
                case.wonder("indeterminate", "position", f"{stage.source}/{partition}")
        if any(each.fate == "open" for each in stage.commits):
            case.wonder("stalled", "open-offsets", stage.source)
