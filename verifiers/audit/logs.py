"""Choose the replica of each partition by which an audit judges, and compare the replicas with each other.

    logs(copies)                (topic, partition) → broker → Log
    chosen(logs)                the broker whose replica has the latest leader epoch; of several, the one that reaches
                                furthest, without a damaged batch if possible

Nothing is judged by a log in which offsets are missing between the first and the last one, as after compaction, or in
which a batch does not have its CRC.
"""

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import functions as F

from onceproof.harness.record.results import Reason
from onceproof.verifiers import replicas
from onceproof.verifiers.audit.copies import Copies
from onceproof.verifiers.audit.noted import Noted, Place
from onceproof.verifiers.evidence import fingerprints
from onceproof.verifiers.evidence.findings import Sample
from onceproof.verifiers.evidence.fingerprints import NOTHING, Fingerprint
from onceproof.verifiers.evidence.frames import rows, small

METADATA = "__cluster_metadata"  # the log of the controllers


@dataclass(frozen=True, kw_only=True)
class Log:
    """A replica's log: its first and last offset (an empty one ends before it begins), and how many batches it has.

    `holed` says that offsets are missing in between, and `damaged` is the offset of the first batch that does not have
    its CRC. `epoch` is the leader epoch of its end; −1 if it is not known.
    """

    first: int = 0
    last: int = -1
    batches: int = 0
    holed: bool = False
    damaged: int | None = None
    epoch: int = -1

    @property
    def rank(self) -> tuple[int, int, bool, int]:
        """The order of replicas: the one that is judged is the highest.

        A broker that died as the leader may have a longer log, which nobody else had accepted (KIP-101).
        """
        return self.epoch, self.last, self.damaged is None, self.batches

    @property
    def whole(self) -> bool:
        """Whether transactions can be judged by it."""
        return not self.holed and self.damaged is None


def logs(copies: Copies) -> dict[Place, dict[str, Log]]:
    """Return the log of each replica."""
    found: dict[Place, dict[str, Log]] = defaultdict(dict)
    for (place, broker), noted in copies.noted.items():
        found[place][broker] = Log(first=noted.base, last=noted.base - 1)
    lane = "OVER (PARTITION BY topic, partition, broker ORDER BY first)"
    following = copies.batches.selectExpr("*", f"coalesce(lag(last) {lane} + 1, first) AS due")
    made = following.groupBy("topic", "partition", "broker").agg(
        *fingerprints.aggregates(
            "min(first) AS first",
            "max(last) AS last",
            "count(*) AS batches",
            "bool_or(first != due OR records != last - first + 1) AS holed",
            "min(IF(intact = false, first, NULL)) AS damaged",
        )
    )
    for row in rows(made):
        found[row["topic"], row["partition"]][row["broker"]] = Log(
            first=row["first"],
            last=row["last"],
            batches=row["batches"],
            holed=row["holed"],
            damaged=row["damaged"],
            epoch=noted_of(copies, (row["topic"], row["partition"]), row["broker"]).epoch(row["last"]),
        )
    for of in found.values():
        if any(log.batches and log.epoch < 0 for log in of.values()):  # they cannot be compared then
            of.update({broker: replace(log, epoch=-1) for broker, log in of.items()})
    return found


def noted_of(copies: Copies, place: Place, broker: str) -> Noted:
    """Return what is noted of a replica; a run's tables note nothing."""
    return copies.noted.get((place, broker), Noted())


def ranked(held: Mapping[str, Log]) -> list[str]:
    """Return the brokers that hold a replica, the one whose replica is judged first."""
    return sorted(held, key=lambda broker: held[broker].rank, reverse=True)


def chosen(held: Mapping[str, Log]) -> str:
    """Return the broker whose replica is judged."""
    return ranked(held)[0]


@dataclass(frozen=True, kw_only=True)
class Range:
    """Offsets, the end not included, in which these replicas of a partition must have the same batches."""

    place: Place
    start: int
    end: int
    brokers: tuple[str, ...]


def compared(copies: Copies, held: Mapping[Place, Mapping[str, Log]]) -> Iterator[Range]:
    """Yield what can be compared: each replica below the high watermark that its broker noted.

    Each broker cleans a compacted log by itself. So replicas are compared from where no cleaner has been, and one with
    missing offsets is left out if that is not known. The controllers' log has no high watermark that is noted.
    """
    for place, of in held.items():
        if place[0] == METADATA:
            continue
        limits = {broker: _limit(copies, place, broker, log) for broker, log in of.items()}
        known = {broker: limit for broker, limit in limits.items() if limit is not None}
        before = 0
        for end in sorted(set(known.values())):
            among = tuple(broker for broker, limit in known.items() if limit >= end)
            begins = [max(of[each].first, noted_of(copies, place, each).cleaned or 0) for each in among]
            if len(among) > 1 and max(before, *begins) < end:
                yield Range(place=place, start=max(before, *begins), end=end, brokers=among)
            before = end


def _limit(copies: Copies, place: Place, broker: str, log: Log) -> int | None:
    """Return the offset up to which a replica can be compared with others; None if that is not known."""
    noted = noted_of(copies, place, broker)
    if (log.holed and noted.cleaned is None) or (noted.hw is None and not copies.stopped):
        return None
    return log.last + 1 if noted.hw is None else min(noted.hw, log.last + 1)


def divergence(copies: Copies, ranges: Sequence[Range], most: int) -> tuple[int, list[Sample]]:
    """Return the number of batches that not all replicas in a range hold, and the first of them, at `most`."""
    found = [
        (*each.place, broker, each.start, each.end, len(each.brokers)) for each in ranges for broker in each.brokers
    ]
    columns = "topic string, partition int, broker string, start bigint, high bigint, replicas int"
    spark, lane = copies.batches.sparkSession, ["topic", "partition", "broker"]
    wanted = F.broadcast(small(spark, found, columns))
    inside = copies.batches.join(wanted, lane).where("first >= start AND last < high")
    made = inside.groupBy(*lane, "start").agg(*fingerprints.aggregates(*fingerprints.fingerprint(fingerprints.BATCH)))
    by_range: dict[tuple[Place, int], dict[str, Fingerprint]] = defaultdict(dict)
    for row in rows(made):
        by_range[(row["topic"], row["partition"]), row["start"]][row["broker"]] = fingerprints.read(row)
    differ = [
        (*each.place, each.start)
        for each in ranges
        if len({by_range[each.place, each.start].get(broker, NOTHING) for broker in each.brokers}) > 1
    ]
    if not differ:  # speed
        return 0, []
    places = F.broadcast(small(spark, differ, "topic string, partition int, start bigint"))
    wrong = replicas.different(inside.join(places, ["topic", "partition", "start"])).persist()
    first = wrong.orderBy("topic", "partition", "first").limit(most)
    return wrong.count(), list(map(replicas.sample, rows(first)))


def uncompared(copies: Copies, held: Mapping[Place, Mapping[str, Log]], ranges: Sequence[Range]) -> Iterator[Reason]:
    """Yield why replicas are not, or not wholly, compared: what is not known of them, or what they have lost."""
    silent = []
    for place, of in sorted(held.items()):
        if place[0] == METADATA:
            continue
        if len(of) > 1 and any(_limit(copies, place, broker, log) is None for broker, log in of.items()):
            silent.append(f"{place[0]}/{place[1]}")
        for broker, log in sorted(of.items()):
            hw, where = noted_of(copies, place, broker).hw, f"{place[0]}/{place[1]} on {broker}"
            if copies.stopped and hw is not None and hw > log.last + 1:
                yield unknown(f"{where} ends at {log.last + 1}, below its high watermark {hw}")
            # A finding has it if it was compared, and `reasons` if the partition would be judged by it.
            if log.damaged is not None and broker != chosen(of) and not _inside(ranges, place, broker, log.damaged):
                yield unknown(f"{where} offset {log.damaged}: the bytes do not have their CRC")
    if silent:
        says = f"replicas of {len(silent)} partitions were not compared, since it is not known how far"
        yield unknown(f"{says}: {_first_of(silent)}")


def _inside(ranges: Sequence[Range], place: Place, broker: str, offset: int) -> bool:
    return any(each.place == place and broker in each.brokers and each.start <= offset < each.end for each in ranges)


def reasons(held: Mapping[Place, Mapping[str, Log]], judged: Container[Place]) -> Iterator[Reason]:
    """Yield why partitions cannot be judged: the best replica of each has damaged batches, or offsets are missing.

    Offsets may be missing in partitions that are not in `judged`.
    """
    best = {place: of[chosen(of)] for place, of in sorted(held.items())}
    for (topic, partition), log in best.items():
        if log.damaged is not None:
            yield unknown(f"{topic}/{partition} offset {log.damaged}: the bytes do not have their CRC")
    holed = [f"{place[0]}/{place[1]}" for place, log in best.items() if log.holed and place in judged]
    if holed:
        yield unknown(f"{len(holed)} partitions were not judged, since offsets are missing: {_first_of(holed)}")


def _first_of(places: Sequence[str]) -> str:
    return ", ".join(places[:3]) + (", …" if len(places) > 3 else "")


def unknown(says: str) -> Reason:
    """Return a reason for which an audit does not know the answer."""
    return Reason(kind="indeterminate", says=says)
