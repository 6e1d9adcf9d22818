"""Check that no producer and no group member writes after its successor has taken over.

    zombie-write    by epoch: a committed batch, or a committed offset, that comes after a batch or marker of a higher
                    epoch of the same producer id in its partition (KIP-98); by group: an offset that an incarnation
                    commits after its successor has committed, with no assignment back in between (KIP-447)

By epoch, the log alone decides. By group, the log gives the order of the committed offsets, and the workers reported
the order of the assignments when they happened:

    input/3 assigned to              worker-0.1, then worker-1.1
    committed offsets in the log     worker-0.1: 500   worker-1.1: 1000   worker-0.1: 1000      the third is a zombie's
    if input/3 had been assigned to worker-0.1 again after worker-1.1, there would be no zombie

A zombie's outputs are not reported as anything else: the inputs that its successor processed too are not `duplicate`.
"""

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from onceproof.harness.record.events import Assigned, Began, Invoked
from onceproof.harness.record.results import Reason
from onceproof.verifiers.evidence.cached import cached
from onceproof.verifiers.evidence.check import LOG, Check, Judged
from onceproof.verifiers.evidence.findings import Sample, finding, place, position
from onceproof.verifiers.evidence.frames import rows, small
from onceproof.verifiers.evidence.tables import PLACE, TRANSACTION, Tables, over_earlier

CLAIM = "no producer epoch and no group member committed anything after its successor had taken over"
_OWNER = ["worker", "incarnation"]


@cached
def by_epoch(tables: Tables) -> DataFrame | None:
    """Return committed batches that follow a higher epoch of their producer id in their partition; None without any.

    Columns: those of `tables.log` with `first` renamed to offset, and `highest`, the highest epoch before the batch.
    """
    earlier = over_earlier(("topic", "partition", "producer_id"), "first")
    return tables.unless_empty(
        tables.log.selectExpr("*", f"max(producer_epoch) {earlier} AS highest")
        .where("producer_epoch < highest AND fate = 'visible'")
        .withColumnRenamed("first", "offset")
    )


@cached
def late_offsets(tables: Tables) -> DataFrame | None:
    """Return offsets that zombies committed, as rows of `tables.commits`; None if there are none.

    They were committed by members that had a successor, or by producers of an older epoch.
    """
    found = [each for each in (_by_group(tables), _by_epoch_of_offsets(tables)) if each is not None]
    return tables.gathered(reduce(DataFrame.unionByName, found).distinct()) if found else None


def _by_epoch_of_offsets(tables: Tables) -> DataFrame | None:
    """Return visible commits that follow a higher epoch of their producer id in the group's log; None without any."""
    markers = tables.of_leaders(tables.facts["internal"]).where("control IS NOT NULL")  # speed
    epochs = ["log", "offset", "producer_id", "producer_epoch"]
    everything = markers.selectExpr("partition AS log", "first AS offset", "producer_id", "producer_epoch").unionByName(
        tables.commits.select(*epochs)
    )
    earlier = over_earlier(("log", "producer_id"), "offset")
    late = everything.selectExpr("*", f"max(producer_epoch) {earlier} AS highest").where("producer_epoch < highest")
    return tables.unless_empty(tables.commits.where("fate = 'visible'").join(late.select(*epochs), epochs, "left_semi"))


def _by_group(tables: Tables) -> DataFrame | None:
    """Return visible commits of members that had a successor; None if there are none."""
    order = Window.partitionBy("partition").orderBy("offset")
    owner = F.struct(*_OWNER)
    seen = tables.commits.where("fate = 'visible' AND worker IS NOT NULL")
    if tables.workload.wiring.assignment != "group":
        return _by_incarnation(tables, seen)
    following = seen.withColumn("before", F.lag(owner).over(order))
    turns = following.where(~F.col("before").eqNullSafe(owner))  # speed: further commits of one owner are no new turn
    late: list[tuple[int, int, int | None]] = []
    runs: dict[int, list[Turn]] = {}
    told = {(partition, *owner) for partition, each in _assigned(tables).items() for _, owner in each}
    judged = [
        row
        for row in rows(turns.select("partition", "offset", *TRANSACTION).orderBy("partition", "offset"))
        # else it reported no assignment of this partition, so it is not known when it had a successor
        if (row["partition"], row["worker"], row["incarnation"]) in told
        # else the history lacks some of what this member reported
        and (row["worker"], row["incarnation"]) not in tables.untold
    ]
    transactions = [(row["worker"], row["incarnation"], row["transaction"]) for row in judged]
    read = _read_at(tables, set(transactions))
    for row, transaction in zip(judged, transactions, strict=True):
        turn = Turn(offset=row["offset"], owner=transaction[:2], read=read.get(transaction, math.inf))
        runs.setdefault(row["partition"], []).append(turn)
    for partition, taken in runs.items():
        if partition in _assigned(tables):  # otherwise no worker reported an assignment of it
            late += [(partition, *span) for span in _late(taken, _assigned(tables)[partition])]
    if not late:  # speed: what follows finds nothing then
        return None
    spans = small(tables.spark, late, "partition int, from bigint, until bigint")
    inside = seen.join(F.broadcast(spans), "partition").where("offset >= from AND (until IS NULL OR offset < until)")
    return tables.gathered(inside.drop("from", "until"))


def _by_incarnation(tables: Tables, seen: DataFrame) -> DataFrame | None:
    """Return the visible commits of transactions that came after one of a later incarnation of the same worker.

    A transaction that did so in one partition is a zombie's in all of its partitions. None if there are none.
    """
    earlier = over_earlier(("partition", "worker"), "offset")
    late = seen.selectExpr("*", f"max(incarnation) {earlier} AS latest").where("incarnation < latest")
    return tables.unless_empty(
        seen.join(late.select(*TRANSACTION).distinct(), TRANSACTION, "left_semi").select(*seen.columns)
    )


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A sequence of commits by one member: its first offset in the log, and when its inputs had been read (s)."""

    offset: int
    owner: tuple[int, int]
    read: float


def _late(taken: Sequence[Turn], assigned: Sequence[tuple[float, tuple[int, int]]]) -> Iterator[tuple[int, int | None]]:
    """Yield the ranges (first offset, end) of the group's log in which a member committed without an assignment.

    Each turn must have an assignment that is later than that of the previous turn, and no later than when the inputs of
    the turn's first transaction had been read. A turn without one is a zombie's, and the next turn is compared with the
    last turn that had one. The end is the offset at which the next turn begins; None if there is none.
    """
    place = 0
    for index, turn in enumerate(taken):
        mine = [at for at in range(place, len(assigned)) if assigned[at][1] == turn.owner]
        following = next((at for at in mine if assigned[at][0] <= turn.read), None)
        if following is None:
            yield turn.offset, taken[index + 1].offset if index + 1 < len(taken) else None
        else:
            place = following


def _read_at(tables: Tables, wanted: Set[tuple[int, int, int]]) -> dict[tuple[int, int, int], float]:
    """Return when each of these transactions had read its inputs: (worker, incarnation, transaction) → seconds.

    Our own workers begin a transaction then. An application may be assigned partitions, and read from them, while its
    transaction is open, but before it sends their offsets.
    """
    began = (((each.worker, each.incarnation, each.transaction), each.t) for each in tables.events.of(Began))
    sent = (((each.worker, each.incarnation, each.transaction), each.sent) for each in tables.events.of(Invoked))
    return {each: at for each, at in chain(began, sent) if at is not None and each in wanted}  # speed


@cached
def _assigned(tables: Tables) -> dict[int, list[tuple[float, tuple[int, int]]]]:
    """Return when each input partition was assigned to which member (worker, incarnation), as the member learned it."""
    found: dict[int, list[tuple[float, tuple[int, int]]]] = {}
    for event in sorted(tables.events.of(Assigned), key=lambda each: each.t):
        for partition in event.partitions:
            found.setdefault(partition, []).append((event.t, (event.worker, event.incarnation)))
    return found


def outputs(tables: Tables) -> list[DataFrame]:
    """Return the outputs that zombies wrote, each frame with the columns of `tables.outputs`."""
    found = []
    late, positions = by_epoch(tables), late_offsets(tables)
    if late is not None:
        places = late.select("topic", "partition", F.explode(F.expr("sequence(offset, last)")).alias("offset"))
        found.append(tables.outputs.join(places, PLACE, "left_semi"))
    if positions is not None:
        found.append(tables.outputs.join(positions.select(*TRANSACTION).distinct(), TRANSACTION, "left_semi"))
    return found


def moved(tables: Tables) -> set[int]:
    """Return the input partitions whose last committed offset was committed by a zombie."""
    positions = late_offsets(tables)
    if positions is None:
        return set()
    last = tables.commits.where("fate = 'visible'").groupBy("partition").agg(F.max("offset").alias("offset"))
    return {row["partition"] for row in rows(positions.join(last, ["partition", "offset"]).select("partition"))}


def _judge(tables: Tables) -> Judged:
    findings = []
    late, positions = by_epoch(tables), late_offsets(tables)
    if late is not None:
        says = "committed batches come after a batch or marker of a higher epoch of the same producer id"
        findings += finding(tables, "zombie-write", says, late, partial(_batch, tables))
    if positions is not None:
        says = (
            "offsets were committed by a producer of an older epoch, or by a group member after its successor had "
            "committed, with no assignment back"
        )
        findings += finding(
            tables, "zombie-write", says, positions, partial(position, tables), order=("partition", "offset")
        )
    return Judged(compared=tables.sizes("batches", "commits"), findings=findings, reasons=_unassigned(tables))


def _unassigned(tables: Tables) -> list[Reason]:
    """Return a reason if workers committed offsets of a partition that no worker was assigned, by the history."""
    if tables.workload.wiring.assignment != "group":
        return []
    committed = {row["partition"] for row in rows(tables.commits.select("partition").distinct())}
    owners = tables.commits.where("worker IS NOT NULL").select("partition", *_OWNER).distinct()
    told = {(partition, *owner) for partition, each in _assigned(tables).items() for _, owner in each}
    if missing := sorted(committed - _assigned(tables).keys()):
        says = f"no worker reported that the group assigned it partition {', '.join(map(str, missing))} of the input"
    elif silent := sorted({(row["partition"], row["worker"], row["incarnation"]) for row in rows(owners)} - told):
        names = ", ".join(f"worker-{worker}.{incarnation} (partition {of})" for of, worker, incarnation in silent)
        says = f"{names} committed offsets without having reported an assignment of the partition"
    else:
        return []
    return [Reason(kind="indeterminate", says=f"{says}, so commits of members without a partition are not known")]


def _batch(tables: Tables, row: Any) -> Sample:
    return {
        **place(tables, row),
        "producer_id": row["producer_id"],
        "producer_epoch": row["producer_epoch"],
        "highest_epoch_before": row["highest"],
    }


CHECK = Check(name="zombies", claim=CLAIM, run=_judge, needs=(LOG,))
