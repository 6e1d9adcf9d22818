"""Did a producer or a group member that had a successor still write?

    zombie-write    by epoch: a committed batch of an epoch after a batch or marker of a higher one of the same producer
                    id in its partition (KIP-98); by group: a committed position of an incarnation after one of its
                    successor, with no assignment back in between (KIP-447)

By epoch, everything is in the log. By group, the order of the positions is the log's; who was assigned the partition,
in which order, the workers said when it happened:

    input/3 assigned to   worker-0.1, then worker-1.1
    positions in the log  worker-0.1: 500   worker-1.1: 1000   worker-0.1: 1000      the third is a zombie's
    had worker-0.1 been assigned input/3 again after worker-1.1, it would be none

A zombie's outputs explain what they would otherwise be: its successor's inputs are not `duplicate`.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from onceproof.harness.record.events import Assigned
from onceproof.verifiers.evidence.check import LOG, Check, Judged
from onceproof.verifiers.evidence.findings import Sample, finding, place, position
from onceproof.verifiers.evidence.spark import rows, small, unless_empty
from onceproof.verifiers.evidence.tables import PLACE, TRANSACTION, Tables, cached, over_earlier

CLAIM = "nothing was committed by a producer epoch or a group member after its successor's"
_OWNER = ["worker", "incarnation"]


@cached
def by_epoch(tables: Tables) -> DataFrame | None:
    """Committed batches of an epoch below one that came before them: topic, partition, offset (the first), last,
    producer_id, producer_epoch, highest."""
    earlier = over_earlier(("topic", "partition", "producer_id"), "first")
    return unless_empty(
        tables.log.selectExpr("*", f"max(producer_epoch) {earlier} AS highest")
        .where("producer_epoch < highest AND fate = 'visible'")
        .withColumnRenamed("first", "offset")
    )


@cached
def by_group(tables: Tables) -> DataFrame | None:
    """Committed positions of members that had a successor, as rows of `tables.commits`."""
    order = Window.partitionBy("partition").orderBy("offset")
    owner = F.struct(*_OWNER)
    seen = tables.commits.where("fate = 'visible' AND worker IS NOT NULL")
    following = seen.withColumn("before", F.lag(owner).over(order))
    turns = following.where(~F.col("before").eqNullSafe(owner))  # speed: who goes on is no other turn
    late: list[tuple[int, int, int | None]] = []
    runs: dict[int, list[tuple[int, tuple[int, int]]]] = {}
    for row in rows(turns.select("partition", "offset", *_OWNER).orderBy("partition", "offset")):
        runs.setdefault(row["partition"], []).append((row["offset"], (row["worker"], row["incarnation"])))
    for partition, taken in runs.items():
        if partition in _assigned(tables):  # else nobody said who it belonged to
            late += [(partition, *span) for span in _late(taken, _assigned(tables)[partition])]
    if not late:  # speed: what follows finds nothing then
        return None
    spans = small(tables.spark, late, "partition int, from bigint, until bigint")
    inside = seen.join(F.broadcast(spans), "partition").where("offset >= from AND (until IS NULL OR offset < until)")
    return inside.drop("from", "until").persist()


def _late(
    taken: Sequence[tuple[int, tuple[int, int]]], assigned: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int | None]]:
    """Spans of offsets, from and until, in which a member committed that no assignment explains.

    Each turn at committing must have an assignment after that of the turn before it. A turn that has none is a
    zombie's, and the next one is measured against the last turn that had.
    """
    place = 0
    for index, (offset, owner) in enumerate(taken):
        following = next((at for at in range(place, len(assigned)) if assigned[at] == owner), None)
        if following is None:
            yield offset, taken[index + 1][0] if index + 1 < len(taken) else None
        else:
            place = following


@cached
def _assigned(tables: Tables) -> dict[int, list[tuple[int, int]]]:
    """Who was assigned each input partition, in the order in which the workers learned it."""
    found: dict[int, list[tuple[int, int]]] = {}
    for event in sorted(tables.events.of(Assigned), key=lambda each: each.t):
        for partition in event.partitions:
            found.setdefault(partition, []).append((event.worker, event.incarnation))
    return found


def outputs(tables: Tables) -> list[DataFrame]:
    """The outputs that zombies wrote, each frame with the columns of `tables.outputs`."""
    found = []
    late, positions = by_epoch(tables), by_group(tables)
    if late is not None:
        places = late.select("topic", "partition", F.explode(F.expr("sequence(offset, last)")).alias("offset"))
        found.append(tables.outputs.join(places, PLACE, "left_semi"))
    if positions is not None:
        found.append(tables.outputs.join(positions.select(*TRANSACTION).distinct(), TRANSACTION, "left_semi"))
    return found


def moved(tables: Tables) -> set[int]:
    """Input partitions whose committed position is a zombie's: what it says is explained by that."""
    positions = by_group(tables)
    if positions is None:
        return set()
    last = tables.commits.where("fate = 'visible'").groupBy("partition").agg(F.max("offset").alias("offset"))
    return {row["partition"] for row in rows(positions.join(last, ["partition", "offset"]).select("partition"))}


def _judge(tables: Tables) -> Judged:
    findings = []
    late, positions = by_epoch(tables), by_group(tables)
    if late is not None:
        says = "committed batches of a producer epoch after a higher one's in their partition"
        findings += finding(tables, "zombie-write", says, late, partial(_batch, tables))
    if positions is not None:
        says = "positions committed by a group member after its successor's, with no assignment back"
        findings += finding(
            tables, "zombie-write", says, positions, partial(position, tables), order=("partition", "offset")
        )
    return Judged(compared=tables.sizes("batches", "commits"), findings=findings)


def _batch(tables: Tables, row: Any) -> Sample:
    return {
        **place(tables, row),
        "producer_id": row["producer_id"],
        "producer_epoch": row["producer_epoch"],
        "highest_epoch_before": row["highest"],
    }


CHECK = Check(name="zombies", claim=CLAIM, run=_judge, needs=(LOG,))
