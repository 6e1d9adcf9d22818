"""What happened when, for the chart of a report: transactions in lanes, faults, ticks, moves of leaders, and curves.

Times are in milliseconds since the start of the run, as integers, since a report contains thousands of them. A table is
a mapping of columns, which compresses better than rows do.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onceproof.harness.cluster import topology
from onceproof.harness.record.events import (
    Assigned,
    Began,
    ClientFailed,
    Exited,
    FaultBegins,
    FaultHealed,
    FaultInjected,
    FaultTarget,
    Invoked,
    OfTransaction,
    Outcome,
    ProcessEvent,
    RecordsDeleted,
    ReplicasChanged,
    RequestEvent,
    RequestMatched,
    RunDescribed,
)
from onceproof.harness.record.history import Events

COMMITTED, ABORTED, INDETERMINATE, OPEN = "committed", "aborted", "indeterminate", "open"
_OUTCOMES = {"ok": COMMITTED, "fail": ABORTED, "info": INDETERMINATE}
Json = dict[str, Any]
Name = tuple[str, int | None, int]  # a worker, its incarnation, and the number of a transaction


@dataclass(frozen=True, kw_only=True)
class FaultSpan:
    """One fault on the time line. Times are seconds since the run's start, and `note` names its target.

    `first_commit_s` is the time from the injection to the next commit that a worker was told of, and
    `after_healing_s` from its healing; None if there was none.
    """

    id: str
    begin: float
    end: float
    note: str
    first_commit_s: float | None = None
    after_healing_s: float | None = None


@dataclass(kw_only=True)
class Transaction:
    """A transaction, as its worker or its requests tell of it. Times are seconds since the run's start.

    `slot` tells transactions apart that a worker has open at one time, as an application with several producers has.
    """

    source: str
    incarnation: int
    number: int
    begin: float
    end: float
    asked: float | None = None
    outcome: str = OPEN
    slot: int = 0
    records: int = 0
    sources: list[tuple[int, int, int]] = field(default_factory=list)
    outputs: list[tuple[str, int, int, int, int]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def faults(events: Events) -> list[FaultSpan]:
    """Return the faults that were injected, in the order of their injection."""
    start, last = events[0].at, events[-1].at
    commits = _commits(events)
    spans = []
    for injected in events.of(FaultInjected):
        fault = injected.fault
        target, deleted = events.first(FaultTarget, fault=fault), events.first(RecordsDeleted, fault=fault)
        healed = events.first(FaultHealed, fault=fault)
        note = (target.node or target.role) if target else deleted.to if deleted else ""
        begin = (events.first(FaultBegins, fault=fault) or injected).at  # a damaged history may lack the first one
        spans.append(
            FaultSpan(
                id=fault,
                begin=begin - start,
                end=(healed.at if healed else last) - start,
                note=note,
                first_commit_s=_first_after(commits, injected.at),
                after_healing_s=_first_after(commits, healed.at) if healed else None,
            )
        )
    return spans


def _first_after(commits: Sequence[float], at: float) -> float | None:
    return next((commit - at for commit in commits if commit >= at), None)


def _commits(events: Events) -> list[float]:
    """Return when the workers were told of their commits, in order, on the clock of the history."""
    return sorted(event.t or event.at for event in events.of(Outcome) if event.type == "ok")


def longest_without(events: Events) -> tuple[float, float] | None:
    """Return the longest time between two commits, and when it began, in seconds; None with less than two commits."""
    commits = [at - events[0].at for at in _commits(events)]
    gaps = [(after - before, before) for before, after in itertools.pairwise(commits)]
    return max(gaps, default=None)


def transactions(events: Events) -> list[Transaction]:
    """Return all transactions in the order in which they began.

    One without an outcome ends with its process, or with the run.
    """
    start, last = events[0].at, events[-1].at - events[0].at
    described = events.first(RunDescribed)
    roles = {name: role for role, name in described.names.items()} if described else {}
    found: dict[tuple[str, int | None, int], Transaction] = {}
    for event in events:
        if not isinstance(event, ProcessEvent):
            continue
        at = event.at - start
        key = (*event.process, getattr(event, "transaction", 0))
        if isinstance(event, Began):
            began = min(at, event.t - start) if event.t else at
            found[key] = Transaction(
                source=event.source, incarnation=event.incarnation, number=event.transaction, begin=began, end=last
            )
        elif isinstance(event, Exited):
            for each in found.values():
                if (each.source, each.incarnation) == event.process and each.outcome == OPEN:
                    each.end = min(each.end, at)
        elif key in found:
            _tell(found[key], event, event.t - start if event.t else at, roles)
    ordered = sorted(found.values(), key=lambda each: each.begin)
    _stack(ordered)
    return ordered


def by_name(told: Iterable[Transaction]) -> dict[Name, Transaction]:
    """Return transactions by their worker, its incarnation, and their number."""
    return {(each.source, each.incarnation, each.number): each for each in told}


def named_by(sample: Mapping[str, Any]) -> list[Name]:
    """Return the names of the transactions that a sample of a finding names: in its events, its header, and itself."""
    found: list[Name] = [
        (each["source"], each["incarnation"], each["transaction"]) for each in sample.get("transactions") or ()
    ]
    for owner in (sample.get("header") or {}, sample):
        if owner.get("worker") is not None and owner.get("transaction") is not None:
            found.append((f"worker-{owner['worker']}", owner.get("incarnation"), owner["transaction"]))
    return found


def _tell(transaction: Transaction, event: ProcessEvent, at: float, roles: Mapping[str, str]) -> None:
    if isinstance(event, OfTransaction):
        transaction.records = event.records
        transaction.sources = [(int(p), *span) for p, span in event.sources.items()]
    if isinstance(event, Invoked):
        transaction.asked = at
        for name, placed in event.outputs.items():
            topic, _, partition = name.rpartition("/")
            transaction.outputs.append((roles.get(topic, topic), int(partition), *placed))
    elif isinstance(event, Outcome):
        transaction.end, transaction.outcome = max(at, transaction.begin), _OUTCOMES[event.type]
    elif isinstance(event, ClientFailed):
        transaction.errors.append(str(event))


def _stack(ordered: Sequence[Transaction]) -> None:
    """Give each transaction the first slot of its worker that is free when it begins."""
    busy: dict[str, list[float]] = defaultdict(list)
    for each in ordered:
        slots = busy[each.source]
        each.slot = next((slot for slot, until in enumerate(slots) if until <= each.begin), len(slots))
        slots[each.slot : each.slot + 1] = [each.end]


def ms(seconds: float) -> int:
    """Return milliseconds, as the chart has them."""
    return round(seconds * 1000)


def lanes(events: Events, told: Sequence[Transaction]) -> list[tuple[str, int]]:
    """Return the lanes of the chart, each a worker and a slot."""
    named = {event.source for event in events if event.source.startswith("worker-")}
    workers = sorted(named, key=lambda each: int(each.removeprefix("worker-")))
    slots = {name: max((each.slot for each in told if each.source == name), default=0) for name in workers}
    return [(name, slot) for name in workers for slot in range(slots[name] + 1)]


def ticks(events: Events) -> Iterator[Json]:
    """Yield what happened at one moment: requests on which a fault acted, assignments of partitions, moves of leaders.

    `lane` is a worker, or empty for what concerns the cluster.
    """
    start = events[0].at
    matched: dict[tuple[str, int, int], RequestMatched] = {}
    known: dict[tuple[str, int], ReplicasChanged] = {}
    for event in events:
        at = ms(event.at - start)
        if isinstance(event, RequestEvent):
            request = (event.link, event.connection, event.correlation)
            if isinstance(event, RequestMatched):
                matched[request] = event
            first = matched.get(request)
            what = f"{first.action} of API key {first.key}" if first is not None else "request"
            says = f"{event.fault}: {what} on {event.link}: {event.kind.removeprefix('request-')}"
            yield {"at": at, "lane": _worker_of(event.link), "kind": "request", "says": says}
        elif isinstance(event, Assigned):
            partitions = ", ".join(map(str, event.partitions)) or "none"
            says = f"{event.source}.{event.incarnation} was assigned partitions {partitions}"
            yield {"at": at, "lane": event.source, "kind": "rebalance", "says": says}
        elif isinstance(event, ReplicasChanged):
            before = known.get((event.topic, event.partition))
            known[event.topic, event.partition] = event
            if before is not None and before.leader != event.leader:
                says = f"leader of {event.topic}/{event.partition}: {before.leader} → {event.leader}"
                yield {"at": at, "lane": "", "kind": "leader", "says": says}


def _worker_of(link: str) -> str:
    """Return the worker that uses a link; empty if no worker does, as for the observer's and those of brokers."""
    try:
        return f"worker-{topology.worker_of_link(link)}"
    except ValueError:
        return ""


def columns(told: Sequence[Transaction], named: Sequence[tuple[str, int]]) -> Json:
    """Return the transactions as columns. Outcomes are the first letters of their names."""
    lane_of = {lane: index for index, lane in enumerate(named)}
    return {
        "lane": [lane_of[each.source, each.slot] for each in told],
        "incarnation": [each.incarnation for each in told],
        "number": [each.number for each in told],
        "begin": [ms(each.begin) for each in told],
        "asked": [None if each.asked is None else ms(each.asked) for each in told],
        "end": [ms(each.end) for each in told],
        "outcome": "".join(each.outcome[0] for each in told),
        "records": [each.records for each in told],
        "sources": [each.sources for each in told],
        "outputs": [each.outputs for each in told],
        "errors": {index: each.errors for index, each in enumerate(told) if each.errors},
    }
