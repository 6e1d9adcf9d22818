"""Check that the history is complete: that it tells of every transaction that the log shows.

Each process numbers the events that it reports. A number that is missing is an event that was lost on its way, and a
worker of the plan without events, or a transaction in the log that no worker began, is one that the history does not
know. Other checks rely on the history, so the verdict is then `unknown` at best.

    worker-0.1 reported its events 1 to 412 and 414 to 500          event 413 is missing
    a commit of input/3 names transaction 9 of worker-1.2           worker-1.2 did not report that it began it

The last events of a process that was killed may be missing, and no check relies on them.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator

from onceproof.harness.record.events import Began, Exited, Outcome, Started
from onceproof.harness.record.results import Reason
from onceproof.verifiers.evidence import fingerprints
from onceproof.verifiers.evidence.check import Check, Judged
from onceproof.verifiers.evidence.frames import columns
from onceproof.verifiers.evidence.tables import TRANSACTION, Tables

CLAIM = "the history tells of every transaction that the log shows, and no event of it is missing"
_SHOWN = 5


def _judge(tables: Tables) -> Judged:
    says = [*_gaps(tables), *_silent(tables), *_unknown(tables), *_unfinished(tables)]
    reasons = [Reason(kind="indeterminate", says=f"the history is incomplete: {each}") for each in says]
    numbered = sum(map(len, tables.numbered.values()))
    return Judged(compared={"events": numbered, **tables.sizes("transactions", "commits")}, reasons=reasons)


def _gaps(tables: Tables) -> Iterator[str]:
    """Yield a line for each process of which events are missing."""
    for process, told in sorted(tables.numbered.items(), key=lambda each: str(each[0])):
        counted = Counter(told)
        twice = [n for n, times in counted.items() if times > 1]
        if missing := max(counted) - len(counted):
            first = next(n for n in itertools.count(1) if n not in counted)
            yield f"{missing} events of {_name(process)} are missing, the first is number {first}"
        if twice:
            yield f"{len(twice)} events of {_name(process)} are there twice, the first is number {min(twice)}"


def _name(process: tuple[str, int | None]) -> str:
    source, incarnation = process
    return source if incarnation is None else f"{source}.{incarnation}"


def _silent(tables: Tables) -> Iterator[str]:
    """Yield a line for each worker of the plan that never started, and for each that started and reported nothing."""
    started = {each.source for each in tables.events.of(Started)}
    told = {source for source, _ in tables.numbered}
    for worker in range(tables.plan.scenario.workload.workers):
        source = f"worker-{worker}"
        if source not in started:
            yield f"{source} never started"
        elif source not in told:
            yield f"{source} reported nothing"


def _unknown(tables: Tables) -> Iterator[str]:
    """Yield a line for each transaction of an output or of a committed offset that no worker began."""
    began = _of_processes(tables.events.of(Began))
    of_outputs = fingerprints.output_ranges(tables).select(*TRANSACTION)
    named = of_outputs.unionAll(tables.all_commits.select(*TRANSACTION)).where("worker IS NOT NULL").distinct()
    strange = sorted(
        (worker, incarnation, transaction)
        for worker, incarnation, transaction in zip(*columns(named), strict=True)
        if transaction not in began.get((f"worker-{worker}", incarnation), ())
    )
    for worker, incarnation, transaction in strange[:_SHOWN]:
        yield f"transaction {transaction} of worker-{worker}.{incarnation} is in the log, but was never begun"
    if len(strange) > _SHOWN:
        yield f"{len(strange)} transactions in the log were never begun"


def _unfinished(tables: Tables) -> Iterator[str]:
    """Yield a line for each transaction of a worker that ended by itself, of which no line says how it ended."""
    by_itself = {each.process for each in tables.events.of(Exited) if each.code == 0}
    ended = _of_processes(tables.events.of(Outcome))
    for each in tables.events.of(Began):
        if each.process in by_itself and each.transaction not in ended.get(each.process, ()):
            yield f"no line says how transaction {each.transaction} of {_name(each.process)} ended"


def _of_processes(events: Iterable[Began | Outcome]) -> dict[tuple[str, int | None], set[int]]:
    """Return the transactions that the events name, by process."""
    found: dict[tuple[str, int | None], set[int]] = {}
    for each in events:
        found.setdefault(each.process, set()).add(each.transaction)
    return found


CHECK = Check(name="history", claim=CLAIM, run=_judge)
