"""Which faults of a run can have caused a finding: those in its cone of time and of links.

A fault that began after the last transaction that a finding names cannot have caused it. A fault on a worker that the
finding does not name probably has not. Both are tried at once before single faults are (`shrink`).
"""

from pathlib import Path

from onceproof.harness.model import plan
from onceproof.harness.record import history, results
from onceproof.harness.record.events import FaultInjected, FaultTarget
from onceproof.report import timeline

_AFTER_S = 1.0  # a fault may be recorded so long after it took effect
_WORKER = "worker-"


def of(folder: Path, cls: str) -> list[set[int]]:
    """Return sets of the numbers of faults that may have caused the findings of a class, the narrower one last.

    There is none if the finding names no transaction, since then every fault may be the cause.
    """
    planned, events = plan.read(folder / "plan.json"), history.read(folder / "history.jsonl")
    samples = [
        sample
        for finding in results.read(folder / "results.json").findings
        if finding.cls == cls
        for sample in finding.samples
    ]
    start = events[0].at
    told = timeline.by_name(timeline.transactions(events))
    named = [told[key] for sample in samples for key in timeline.named_by(sample) if key in told]
    if not named:
        return []
    last = start + max(each.end for each in named) + _AFTER_S
    workers = {each.source for each in named}
    began = {event.fault: event.at for event in events.of(FaultInjected)}
    in_time = {number for number, fault in enumerate(planned.faults) if fault.id in began and began[fault.id] <= last}
    on_links = {number for number in in_time if _on(events, planned.faults[number].id, workers)}
    return [cone for cone in (in_time, on_links) if len(cone) < len(planned.faults) and cone]


def _on(events: history.Events, fault: str, workers: set[str]) -> bool:
    """Return whether a fault hit one of these workers, or something that is no worker."""
    target = events.first(FaultTarget, fault=fault)
    hit = target.role if target is not None else ""
    return not hit.startswith(_WORKER) or hit in workers
