"""Judge transactions from the logs alone: what the coordinators decided, and what the partitions hold.

    torn-transaction      a marker ends a transaction although its coordinator decided nothing, or something else
    hung-transaction      a decision has no marker in a partition, or a batch belongs to no transaction
    zombie-write          a marker or a batch of an older epoch was accepted
    lost, duplicate       the sequence numbers of a producer have a gap, or repeat
    replica-divergence    replicas hold different batches, or bytes that do not have their CRC, below the high watermark

`coordinator` describes the rules. Neither history nor ledger is used, so nothing is said about the records' content,
nor about commits that the client never asked for (KAFKA-17754): the log is consistent then.

If the directories were copied from running brokers, the end of one log may be older than the end of another one. Then
nothing is concluded from what is missing at an end.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from onceproof.harness.record.results import Finding, Reason, Verdict, decide
from onceproof.verifiers import coordinator
from onceproof.verifiers.audit.copies import Batch, Copies, Place
from onceproof.verifiers.evidence import decisions, matching
from onceproof.verifiers.evidence.decisions import Lane, Span

_SAYS = {
    **coordinator.SAYS,
    "lost": "batches are missing: the sequence numbers of a producer have a gap",
    "duplicate": "batches were appended twice: the sequence numbers of a producer repeat",
    "replica-divergence": "replicas hold different batches below the high watermark",
}
_SEQUENCES = 1 << 31
_SAMPLES_MAX = 10
Sample = dict[str, Any]


@dataclass(kw_only=True)
class Audit:
    """The outcome of an audit: findings, reasons, what was compared, and a row for each transactional id."""

    findings: list[Finding] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)
    compared: dict[str, int] = field(default_factory=dict)
    ids: list[dict[str, Any]] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        """The verdict that follows from findings and reasons."""
        return decide(self.findings, self.reasons)


def audit(copies: Copies) -> Audit:
    """Judge what was read."""
    done = Audit()
    found: dict[str, list[Sample]] = defaultdict(list)
    whole = {place: longest(logs) for place, logs in copies.logs.items() if _judged(place[0])}
    holed = {place for place, log in whole.items() if _has_holes(log)}
    _coordinators(copies, {place: log for place, log in whole.items() if place not in holed}, found, done)
    for place, log in sorted(whole.items()):
        if place not in holed and not place[0].startswith("__"):  # a group coordinator does not number its batches
            for cls, sample in _sequences(log, _of_zombies(place, found.get("zombie-write", []))):
                found[cls].append({"topic": place[0], "partition": place[1], **sample})
    _replicas(copies, found, done)
    if holed:
        shown = ", ".join(f"{topic}/{partition}" for topic, partition in sorted(holed)[:3])
        more = ", …" if len(holed) > 3 else ""
        done.reasons.append(
            _unknown(f"{len(holed)} partitions were not judged, since offsets are missing: {shown}{more}")
        )
    done.reasons += [_unknown(f"damaged: {each}") for each in copies.damaged]
    for cls, samples in sorted(found.items()):
        samples.sort(key=lambda each: (each["topic"], each["partition"], each["offset"]))
        done.findings.append(Finding(cls=cls, count=len(samples), says=_SAYS[cls], samples=samples[:_SAMPLES_MAX]))
    done.ids = _ids(copies.states)
    done.compared |= {
        "partitions": len(whole) - len(holed),
        "replicas": sum(len(logs) for logs in copies.logs.values()),
        "batches": sum(len(log) for logs in copies.logs.values() for log in logs.values()),
    }
    return done


def longest(logs: dict[str, list[Batch]]) -> list[Batch]:
    """Return the log of the replica that reaches furthest."""
    return max(logs.values(), key=lambda log: (log[-1].last if log else -1, len(log)))


def _judged(topic: str) -> bool:
    """Return whether producers write to a topic; the coordinators' own log and the controllers' are not judged."""
    return topic not in ("__transaction_state", "__cluster_metadata", "__share_group_state")


def _unknown(says: str) -> Reason:
    return Reason(kind="indeterminate", says=says)


def _has_holes(log: Sequence[Batch]) -> bool:
    """Return whether offsets are missing between the first and the last one, as after compaction."""
    if any(batch.records != batch.last - batch.first + 1 for batch in log):
        return True
    return any(after.first != before.last + 1 for before, after in pairwise(log))


def spans(log: Sequence[Batch]) -> dict[int, list[Span]]:
    """Return the spans in a replica's log, by producer id."""
    held: dict[int, list[Batch]] = defaultdict(list)
    found: dict[int, list[Span]] = defaultdict(list)
    for batch in log:
        if batch.control in ("commit", "abort"):
            found[batch.producer_id].append(_span(held.pop(batch.producer_id, []), batch))
        elif batch.transactional and batch.control is None:
            held[batch.producer_id].append(batch)
    for producer, batches in held.items():
        found[producer].append(_span(batches, None))
    return found


def _span(batches: Sequence[Batch], marker: Batch | None) -> Span:
    first = batches[0] if batches else marker
    assert first is not None
    epochs = [batch.producer_epoch for batch in batches] or [-1]
    span = Span(
        producer_id=first.producer_id,
        first=first.first,
        batches=len(batches),
        lowest=min(epochs),
        highest=max(epochs),
    )
    if marker is None:
        return span
    return replace(
        span,
        marker=marker.first,
        commit=marker.control == "commit",
        epoch=marker.producer_epoch,
        coordinator_epoch=-1 if marker.coordinator_epoch is None else marker.coordinator_epoch,
    )


def _coordinators(copies: Copies, whole: dict[Place, list[Batch]], found: dict[str, list[Sample]], done: Audit) -> None:
    """Match spans and decisions, and add what is wrong to `found`, and what cannot be known to the reasons."""
    named = {f"{topic}/{partition}": (topic, partition) for topic, partition in whole}
    known = {row["producer_id"] for row in copies.states}
    everything = {
        (place, producer): mine
        for place, at in named.items()
        for producer, mine in spans(whole[at]).items()
        if producer in known or not (copies.own and at[0].startswith("__"))
    }
    decided = {
        producer: [
            replace(each, partitions=each.partitions & named.keys())
            for each in sorted(mine, key=lambda each: each.offset)
        ]
        for producer, mine in decisions.decisions(copies.states).items()
    }
    partial = copies.partial or _gone(copies)
    cut = [place for place, at in named.items() if whole[at] and whole[at][0].first > 0]
    open_at, unknown, late = decisions.ongoing(copies.states), 0, 0
    lanes = list(matching.lanes(everything, decided, partial=partial, cut=cut))
    for lane in lanes:
        unknown += lane.unknown
        topic, partition = named[lane.place]
        for cls, offset, details in coordinator.problems(lane, open_at):
            if partial and not lane.decisions:
                unknown += 1
            elif not copies.stopped and _at_end(lane, offset):
                late += 1
            else:
                found[cls].append({"topic": topic, "partition": partition, "offset": offset, **details})
    for place, offset, details in coordinator.older_coordinators(lanes):
        topic, partition = named[place]
        if copies.stopped:
            found["zombie-write"].append({"topic": topic, "partition": partition, "offset": offset, **details})
        else:
            late += 1  # the marker may have been sent again behind the end of the copy
    if unknown:
        done.reasons.append(
            _unknown(f"{unknown} transactions cannot be judged: states of transactional ids are missing")
        )
    if late:
        says = f"{late} transactions at the end of a log cannot be judged: the brokers ran when they were copied"
        done.reasons.append(_unknown(says))
    done.compared["spans"] = sum(map(len, everything.values()))
    done.compared["decisions"] = sum(map(len, decided.values()))


def _at_end(lane: Lane, offset: int) -> bool:
    """Return whether nothing behind this offset of a lane matches a decision."""
    last = max((s.marker for s, d in zip(lane.spans, lane.of, strict=True) if d and s.marker is not None), default=-1)
    return offset > last


def _gone(copies: Copies) -> bool:
    """Return whether records of the coordinators' logs are gone, so that earlier decisions are not known."""
    logs = [longest(logs) for place, logs in copies.logs.items() if place[0] == "__transaction_state"]
    return any((log and log[0].first > 0) or _has_holes(log) for log in logs)


def _of_zombies(place: Place, samples: Sequence[Sample]) -> list[tuple[int, range]]:
    """Return the producer id and the offsets of each span in a partition that is a zombie's by its batches."""
    return [
        (each["producer_id"], range(each["first"], each["last"]))
        for each in samples
        if (each["topic"], each["partition"]) == place and each.get("batches") and each["offset"] == each["first"]
    ]


def _sequences(log: Sequence[Batch], zombies: Sequence[tuple[int, range]]) -> Iterator[tuple[str, Sample]]:
    """Yield gaps and repetitions in the sequence numbers of each producer id and epoch, without those in `zombies`.

    A zombie's batch of an older epoch need not have the next sequence number of that epoch, and has one class only.
    """
    expected: dict[tuple[int, int], int] = {}
    for batch in log:
        if batch.producer_id < 0 or batch.control is not None:
            continue
        producer = batch.producer_id, batch.producer_epoch
        due = expected.get(producer, 0 if log[0].first == 0 else batch.sequence)
        if batch.sequence != due and not any(
            batch.producer_id == each and batch.first in span for each, span in zombies
        ):
            details = {"producer_id": producer[0], "producer_epoch": producer[1], "sequence": batch.sequence}
            cls = "duplicate" if batch.sequence < due else "lost"
            yield cls, {"offset": batch.first, **details, "expected_sequence": due}
        expected[producer] = (batch.sequence + batch.last - batch.first + 1) % _SEQUENCES


def _replicas(copies: Copies, found: dict[str, list[Sample]], done: Audit) -> None:
    """Compare the replicas of each partition below the lowest high watermark that any of their brokers noted."""
    for (topic, partition), logs in sorted(copies.logs.items()):
        place = topic, partition
        marks = [copies.hw.get((place, broker)) for broker in logs]
        known = [each for each in marks if each is not None]
        ends = [log[-1].last + 1 if log else 0 for log in logs.values()]
        high = min([*known, *ends]) if len(known) == len(marks) or copies.stopped else 0
        start = max((log[0].first if log else high for log in logs.values()), default=0)
        held: Counter[tuple[Any, ...]] = Counter()
        by: dict[tuple[Any, ...], list[str]] = defaultdict(list)
        for broker, log in logs.items():
            for batch in log:
                if batch.first >= start and batch.last < high:
                    same = batch.first, batch.last, batch.producer_id, batch.producer_epoch, batch.sequence, batch.crc
                    key = (*same, batch.intact is not False)
                    held[key] += 1
                    by[key].append(broker)
        damaged = [key for key in held if not key[-1]]
        if damaged and len(logs) == 1:
            done.reasons.append(
                _unknown(f"{topic}/{partition} offset {damaged[0][0]}: the bytes do not have their CRC")
            )
        elif len(logs) > 1:
            found["replica-divergence"] += [
                {
                    "topic": topic,
                    "partition": partition,
                    "offset": key[0],
                    "crc": key[5],
                    "intact": key[-1],
                    "held_by": by[key],
                }
                for key, count in sorted(held.items())
                if count != len(logs)
            ]
    if not found["replica-divergence"]:
        del found["replica-divergence"]


def _ids(states: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each transactional id: producer ids, last epoch, commits, aborts, last state."""
    of_id: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in sorted(states, key=lambda row: (row["log"], row["offset"])):
        of_id[row["transactional_id"]].append(row)
    return [
        {
            "transactional_id": name,
            "producer_ids": sorted({row["producer_id"] for row in rows if row.get("producer_id") is not None}),
            "epoch": rows[-1].get("producer_epoch"),
            "commits": sum(row["state"] == "PrepareCommit" for row in rows),
            "aborts": sum(row["state"] == "PrepareAbort" for row in rows),
            "state": rows[-1]["state"],
            "transaction_version": max(row.get("version") or 0 for row in rows),
        }
        for name, rows in sorted(of_id.items())
    ]
