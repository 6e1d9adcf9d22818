"""What does not depend on the pipeline: two readers, three replicas, the brokers' open transactions, the history."""

from collections import defaultdict
from typing import Any

from tests.oracle.case import Case, owner_of, place_of
from tests.oracle.stages import Stage
from tests.rundata import worker_of


def readers(case: Case) -> None:
    """The observer saw what is there at rest."""
    observed, rows = list(case.seen()), []
    for row in observed:
        place, there = place_of(row), case.at_rest.get(place_of(row))
        log = case.logs.get(place[:2])
        if place in case.found("aborted-read") or log is None or row["offset"] < log.start:
            continue
        if there is None and not case.whole(*place[:2]):
            continue
        told = None if there is None else there["digest"] if there.get("content") is None else there["content"]
        if told != row["digest"]:
            case.add("inconsistent-read", *place)
            rows += [row] if there is None else [row, there]
    case.explain(rows)
    if case.pipeline.observer:
        for topic in case.pipeline.judged:
            outputs = any(row["topic"] == topic for row in case.run.outputs)
            if outputs and not any(row["topic"] == topic for row in observed):
                case.wonder("vacuous", "nobody-watched", topic)


def replicas(case: Case) -> None:
    """All replicas in sync hold the same batches."""
    held: dict[tuple[str, int], dict[tuple[Any, ...], set[str]]] = defaultdict(lambda: defaultdict(set))
    same = ("first", "last", "producer_id", "producer_epoch", "sequence", "crc")
    for row in case.run.batches:
        batch = *(row[key] for key in same), row["intact"] is not False  # None: its bytes were not read
        held[row["topic"], row["partition"]][batch].add(row["broker"])
    for each in case.run.partitions:
        topic, partition = case.own(each["topic"]), each["partition"]
        for broker in set(each["replicas"]) - set(each["isr"]):
            case.wonder("stalled", "not-in-sync", f"{topic}/{partition} on {broker}")
        for batch, brokers in held[each["topic"], partition].items():
            first, last = batch[0], batch[1]
            if last >= each["start"] and first < each["high_watermark"] and not brokers >= set(each["isr"]):
                case.add("replica-divergence", topic, partition, first)


def open_transactions(case: Case) -> None:
    for each in case.run.open_transactions:
        topic = case.own(each["topic"])
        if each["known_as"] is None:
            case.add("hung-transaction", topic, each["partition"], each["start_offset"])
        else:
            case.wonder("stalled", "open", f"{topic}/{each['partition']}")


def history(case: Case, stages: list[Stage]) -> None:
    """The history tells of every worker and every transaction that the log shows."""
    for (source, incarnation), (missing, twice) in case.told.gaps.items():
        rule = "events-missing" if missing else "events-twice" if twice else ""
        case.wonder("indeterminate", rule, source if incarnation is None else f"{source}.{incarnation}")
    mine = [each for each in case.run.events if each["source"].startswith("worker-")]
    started = {worker_of(each) for each in mine if each["event"] == "started"}
    reported = {worker_of(each) for each in mine if each["event"] not in ("started", "exited")}
    for worker in range(case.pipeline.workers):
        if worker not in started:
            case.wonder("indeterminate", "never-started", f"worker-{worker}")
        elif worker not in reported:
            case.wonder("indeterminate", "silent", f"worker-{worker}")
    told = case.told.transactions
    shown = {owner_of(row) for row in case.run.outputs} | {
        each.owner for stage in stages for each in stage.visible() if each.owner[0] is not None
    }
    for owner in shown:
        if None not in owner and (owner not in told or told[owner].began is None):
            case.wonder("indeterminate", "never-begun", owner)
    _ends(case)


def _ends(case: Case) -> None:
    """A worker that ended by itself told how its last transaction ended."""
    for event in case.run.events:
        if event["event"] == "exited" and event["source"].startswith("worker-") and event["code"] == 0:
            process = worker_of(event), event["incarnation"]
            mine = [owner for owner in case.told.transactions if owner[:2] == process]
            if mine and not case.told.transactions[max(mine)].outcomes:
                case.wonder("indeterminate", "no-end", f"worker-{process[0]}.{process[1]}")
