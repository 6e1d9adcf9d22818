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

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from onceproof.harness.record.results import Finding, Reason, Verdict, decide
from onceproof.verifiers import coordinator, replicas
from onceproof.verifiers.audit.copies import Copies, read_states
from onceproof.verifiers.audit.logs import (
    METADATA,
    Log,
    chosen,
    compared,
    divergence,
    logs,
    ranked,
    reasons,
    uncompared,
    unknown,
)
from onceproof.verifiers.audit.noted import Place
from onceproof.verifiers.evidence import decisions, matching, rules, spans
from onceproof.verifiers.evidence.decisions import Lane
from onceproof.verifiers.evidence.frames import rows, small
from onceproof.verifiers.evidence.rules import COORDINATORS, Sample
from onceproof.verifiers.evidence.tables import over_earlier

_SAYS = {**rules.SAYS, **coordinator.SEQUENCES, "replica-divergence": replicas.SAYS}
_OLDER = "batches without a transaction come after a batch of a higher epoch of the same producer id"
_OF_OLDER_EPOCH = "NOT transactional AND coalesce(producer_epoch < highest, false)"
_ORDER = ["topic", "partition", "offset"]
_SAMPLES_MAX = 10


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
    """Judge what was read. Raises whatever Spark raises when it cannot read the logs."""
    held = logs(copies)
    read_states(copies, lambda place: ranked(held[place]))
    done = Audit(ids=_ids(copies.states))
    judged = {place: of for place, of in held.items() if _judged(place[0])}
    best = {place: of[chosen(of)] for place, of in judged.items()}
    whole = {place: log for place, log in best.items() if log.whole}
    batches = _of_replicas(copies, {place: chosen(judged[place]) for place in whole})
    ends = rows(copies.ends.orderBy("segment")) if copies.ends is not None else []
    found = _coordinators(copies, held, whole, batches, ends, done)
    done.findings = [_finding(cls, samples) for cls, samples in found.items()]
    done.findings += _sequences(batches, whole, found.get("zombie-write", []), own=copies.own)
    ranges = list(compared(copies, held))
    differ, first = divergence(copies, ranges, _SAMPLES_MAX)
    if differ:
        done.findings.append(_finding("replica-divergence", first, differ))
    done.findings.sort(key=lambda each: each.cls)
    done.reasons += [*reasons(held, judged), *uncompared(copies, held, ranges)]
    done.reasons += [unknown(f"damaged: {each}") for each in (*_cut_off(ends), *copies.damaged)]
    done.compared |= {
        "partitions": len(whole),
        "replicas": len({(each.place, broker) for each in ranges for broker in each.brokers}),
        "batches": sum(log.batches for of in held.values() for log in of.values()),
    }
    return done


def _cut_off(ends: Iterable[Row]) -> list[str]:
    """Return a line for each segment that ends in bytes that are no complete batch."""
    return [
        f"{each['segment']}: the last {each['rest']} of {Path(each['segment']).stat().st_size} bytes are no complete "
        "batch"
        for each in ends
    ]


def _finding(cls: str, samples: list[Sample], count: int | None = None, *, says: str = "") -> Finding:
    samples.sort(key=lambda each: tuple(each[name] for name in _ORDER))
    count = len(samples) if count is None else count
    return Finding(cls=cls, count=count, says=says or _SAYS[cls], samples=samples[:_SAMPLES_MAX])


def _judged(topic: str) -> bool:
    """Return whether producers write to a topic; the coordinators' own log and the controllers' are not judged."""
    return topic not in (COORDINATORS, METADATA, "__share_group_state")


def _of_replicas(copies: Copies, brokers: Mapping[Place, str]) -> DataFrame:
    """Return the batches of one replica of each of these partitions."""
    wanted = [(*place, broker) for place, broker in brokers.items()]
    one = small(copies.batches.sparkSession, wanted, "topic string, partition int, broker string")
    return copies.batches.join(F.broadcast(one), ["topic", "partition", "broker"])


def _coordinators(
    copies: Copies,
    held: Mapping[Place, Mapping[str, Log]],
    whole: Mapping[Place, Log],
    batches: DataFrame,
    ends: Sequence[Row],
    done: Audit,
) -> dict[str, list[Sample]]:
    """Match spans and decisions. Return what is wrong, by class, and add to the reasons what cannot be known."""
    found: dict[str, list[Sample]] = defaultdict(list)
    named = {f"{topic}/{partition}": (topic, partition) for topic, partition in whole}
    known = {row["producer_id"] for row in copies.states}
    everything = {
        (place, producer): mine
        for (place, producer), mine in spans.of_logs(batches).items()
        if producer in known or not (copies.own and place.startswith("__"))
    }
    decided = {
        producer: [each.within(named.keys()) for each in sorted(mine, key=lambda each: each.offset)]
        for producer, mine in decisions.decisions(copies.states).items()
    }
    torn = {Path(each["segment"]).parent.name for each in ends}
    settled = {each for each in whole if copies.stopped and f"{each[0]}-{each[1]}" not in torn}
    partial = copies.partial or _gone(held)
    cut = [place for place, at in named.items() if whole[at].first > 0]
    open_at, unjudged, late = decisions.ongoing(copies.states), 0, 0
    lanes = list(matching.lanes(everything, decided, partial=partial, cut=cut))
    for lane in lanes:
        unjudged += lane.unknown
        topic, partition = named[lane.place]
        for cls, offset, details in rules.problems(lane, open_at):
            if partial and not lane.decisions:
                unjudged += 1
            elif (topic, partition) not in settled and _at_end(lane, offset):
                late += 1
            else:
                found[cls].append({"topic": topic, "partition": partition, "offset": offset, **details})
    for place, offset, details in rules.older_coordinators(lanes):
        topic, partition = named[place]
        if (topic, partition) in settled:
            found["zombie-write"].append({"topic": topic, "partition": partition, "offset": offset, **details})
        else:
            late += 1  # the marker may have been sent again behind the end of the copy
    unjudged_for = {
        "states of transactional ids are missing": unjudged,
        rules.UNALIGNED: sum(lane.unaligned for lane in lanes),
        "the ends of the logs may be missing, since a segment is cut off or brokers ran when they were copied": late,
    }
    done.reasons += [
        unknown(f"{count} transactions cannot be judged: {why}") for why, count in unjudged_for.items() if count
    ]
    done.compared["spans"] = sum(map(len, everything.values()))
    done.compared["decisions"] = sum(map(len, decided.values()))
    return found


def _at_end(lane: Lane, offset: int) -> bool:
    """Return whether nothing behind this offset of a lane matches a decision."""
    last = max((s.marker for s, d in zip(lane.spans, lane.of, strict=True) if d and s.marker is not None), default=-1)
    return offset > last


def _gone(held: Mapping[Place, Mapping[str, Log]]) -> bool:
    """Return whether records of the coordinators' logs are gone, so that earlier decisions are not known."""
    best = [of[chosen(of)] for place, of in held.items() if place[0] == COORDINATORS]
    return any(log.first > 0 or not log.whole for log in best)


def _sequences(
    batches: DataFrame, whole: Mapping[Place, Log], zombies: Iterable[Sample], *, own: bool
) -> list[Finding]:
    """Return the findings of gaps and repetitions in the sequence numbers of each producer id and epoch.

    Of batches without a transaction, older epochs are findings as well. `own` says that the logs are those of a run.

    A group coordinator does not number its batches. A zombie's batch of an older epoch need not have the next sequence
    number of that epoch, and has one class only.
    """
    starts = [(*place, log.first) for place, log in whole.items() if place[0] != spans.OFFSETS]
    everything = batches.where("producer_id >= 0").join(
        F.broadcast(small(batches.sparkSession, starts, "topic string, partition int, start bigint")),
        ["topic", "partition"],
    )
    earlier = over_earlier(("topic", "partition", "producer_id"), "first")
    known = f"highest IS NOT NULL OR {coordinator.FROM_THE_FIRST}" if own else "highest IS NOT NULL"
    of_producers = (
        everything.selectExpr("*", f"max(producer_epoch) {earlier} AS highest")
        .where("control IS NULL")
        .selectExpr("*", f"{known} AS known", f"{_OF_OLDER_EPOCH} AS older")
    )
    older = of_producers.where("older").selectExpr(
        "*", "cast(NULL AS bigint) AS expected", "'zombie-write' AS cls", "first AS offset"
    )
    wrong = _but_zombies(coordinator.out_of_sequence(of_producers.where("NOT older")), zombies)
    wrong = wrong.unionByName(older).persist()
    return [
        _finding(
            row["cls"],
            [_sequence(each) for each in rows(_first(wrong.where(F.col("cls") == row["cls"])))],
            row["count"],
            says=_OLDER if row["cls"] == "zombie-write" else "",
        )
        for row in rows(wrong.groupBy("cls").count())
    ]


def _but_zombies(wrong: DataFrame, zombies: Iterable[Sample]) -> DataFrame:
    """Return the batches in `wrong` that are not in transactions with batches of an older epoch."""
    late = [
        (each["topic"], each["partition"], each["producer_id"], each["first"], each["last"])
        for each in zombies
        if each.get("batches") and each["offset"] == each["first"]
    ]
    if not late:  # speed
        return wrong
    columns = "topic string, partition int, producer_id bigint, begin bigint, marker bigint"
    spanned = small(wrong.sparkSession, late, columns)
    lane = ["topic", "partition", "producer_id"]
    same = [F.col(f"wrong.{name}") == F.col(f"late.{name}") for name in lane]
    inside = [F.expr("wrong.first >= late.begin AND wrong.first < late.marker")]
    return wrong.alias("wrong").join(F.broadcast(spanned.alias("late")), [*same, *inside], "left_anti")


def _first(wrong: DataFrame) -> DataFrame:
    return wrong.orderBy(*_ORDER).limit(_SAMPLES_MAX)


def _sequence(row: Any) -> Sample:
    where = {name: row[name] for name in _ORDER}
    if row["cls"] != "zombie-write":
        return {**where, **coordinator.of_sequence(row)}
    told = {"producer_id": row["producer_id"], "producer_epoch": row["producer_epoch"]}
    return {**where, **told, "highest_epoch_before": row["highest"]}


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
