"""Choose the replica of each partition by which an audit judges, and compare the replicas with each other.

    logs(copies)                (topic, partition) → broker → Log
    chosen(logs)                the broker whose replica reaches furthest; of several, one without a damaged batch

Nothing is judged by a log in which offsets are missing between the first and the last one, as after compaction, or in
which a batch does not have its CRC.
"""

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import functions as F

from onceproof.harness.record.results import Reason
from onceproof.verifiers import replicas
from onceproof.verifiers.audit.copies import Copies, Place
from onceproof.verifiers.evidence import fingerprints
from onceproof.verifiers.evidence.findings import Sample
from onceproof.verifiers.evidence.fingerprints import NOTHING, Fingerprint
from onceproof.verifiers.evidence.spark import rows, small


@dataclass(frozen=True, kw_only=True)
class Log:
    """A replica's log: its first and last offset (0 and −1 if it is empty), and how many batches it has.

    `holed` says that offsets are missing in between, and `damaged` is the offset of the first batch that does not have
    its CRC.
    """

    first: int = 0
    last: int = -1
    batches: int = 0
    holed: bool = False
    damaged: int | None = None

    @property
    def rank(self) -> tuple[int, bool, int]:
        """The order of replicas: the one that is judged is the highest."""
        return self.last, self.damaged is None, self.batches

    @property
    def whole(self) -> bool:
        """Whether transactions can be judged by it."""
        return not self.holed and self.damaged is None


def logs(copies: Copies) -> dict[Place, dict[str, Log]]:
    """Return the log of each replica."""
    found: dict[Place, dict[str, Log]] = defaultdict(dict)
    for place, broker in copies.replicas:
        found[place][broker] = Log()
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
        )
    return found


def chosen(held: Mapping[str, Log]) -> str:
    """Return the broker whose replica is judged."""
    return max(held, key=lambda broker: held[broker].rank)


def divergence(copies: Copies, held: Mapping[Place, Mapping[str, Log]], most: int) -> tuple[int, list[Sample]]:
    """Return the number of batches that not all replicas of their partition hold, and the first of them, at `most`.

    Compared is what lies below the lowest high watermark that any of the brokers noted.
    """
    ranges = [(*place, *_compared(copies, place, of), len(of)) for place, of in held.items() if len(of) > 1]
    columns = "topic string, partition int, start bigint, high bigint, replicas int"
    spark = copies.batches.sparkSession
    inside = copies.batches.join(F.broadcast(small(spark, ranges, columns)), ["topic", "partition"])
    inside = inside.where("first >= start AND last < high")
    made = inside.groupBy("topic", "partition", "broker").agg(
        *fingerprints.aggregates(*fingerprints.fingerprint(fingerprints.BATCH))
    )
    found: dict[Place, dict[str, Fingerprint]] = defaultdict(dict)
    for row in rows(made):
        found[row["topic"], row["partition"]][row["broker"]] = fingerprints.read(row)
    differ = [place for place, by in found.items() if len({by.get(each, NOTHING) for each in held[place]}) > 1]
    if not differ:  # speed
        return 0, []
    places = F.broadcast(small(spark, differ, "topic string, partition int"))
    wrong = replicas.different(inside.join(places, ["topic", "partition"])).persist()
    first = wrong.orderBy("topic", "partition", "first").limit(most)
    return wrong.count(), list(map(replicas.sample, rows(first)))


def _compared(copies: Copies, place: Place, held: Mapping[str, Log]) -> tuple[int, int]:
    """Return the offsets, the end not included, between which the replicas of a partition must agree."""
    marks = [copies.hw.get((place, broker)) for broker in held]
    known = [each for each in marks if each is not None]
    ends = [each.last + 1 for each in held.values()]
    high = min([*known, *ends]) if len(known) == len(marks) or copies.stopped else 0
    return max(each.first if each.batches else high for each in held.values()), high


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
        shown = ", ".join(holed[:3]) + (", …" if len(holed) > 3 else "")
        yield unknown(f"{len(holed)} partitions were not judged, since offsets are missing: {shown}")


def unknown(says: str) -> Reason:
    """Return a reason for which an audit does not know the answer."""
    return Reason(kind="indeterminate", says=says)
