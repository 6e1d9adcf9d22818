"""Check that no producer and no group member writes after its successor has taken over.

    zombie-write    by epoch: a committed batch that comes after a batch or marker of a higher epoch of the same
                    producer id in its partition (KIP-98); by group: an offset that an incarnation commits after its
                    successor has committed, with no assignment back in between (KIP-447)

By epoch, the log alone decides. By group, the log gives the order of the committed offsets, and the workers reported
the order of the assignments when they happened:

    input/3 assigned to              worker-0.1, then worker-1.1
    committed offsets in the log     worker-0.1: 500   worker-1.1: 1000   worker-0.1: 1000      the third is a zombie's
    if input/3 had been assigned to worker-0.1 again after worker-1.1, there would be no zombie

A zombie's outputs are not reported as anything else: the inputs that its successor processed too are not `duplicate`.
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

CLAIM = "no producer epoch and no group member committed anything after its successor had taken over"
_OWNER = ["worker", "incarnation"]


@cached
def by_epoch(tables: Tables) -> DataFrame | None:
    """Return committed batches that follow a higher epoch of their producer id in their partition; None without any.

    Columns: those of `tables.log` with `first` renamed to offset, and `highest`, the highest epoch before the batch.
    """
    earlier = over_earlier(("topic", "partition", "producer_id"), "first")
    return unless_empty(
        tables.log.selectExpr("*", f"max(producer_epoch) {earlier} AS highest")
        .where("producer_epoch < highest AND fate = 'visible'")
        .withColumnRenamed("first", "offset")
    )


@cached
def by_group(tables: Tables) -> DataFrame | None:
    """Return offsets committed by members that had a successor, as rows of `tables.commits`; None if there are none."""
    order = Window.partitionBy("partition").orderBy("offset")
    owner = F.struct(*_OWNER)
    seen = tables.commits.where("fate = 'visible' AND worker IS NOT NULL")
    following = seen.withColumn("before", F.lag(owner).over(order))
    turns = following.where(~F.col("before").eqNullSafe(owner))  # speed: further commits of one owner are no new turn
    late: list[tuple[int, int, int | None]] = []
    runs: dict[int, list[tuple[int, tuple[int, int]]]] = {}
    for row in rows(turns.select("partition", "offset", *_OWNER).orderBy("partition", "offset")):
        runs.setdefault(row["partition"], []).append((row["offset"], (row["worker"], row["incarnation"])))
    for partition, taken in runs.items():
        if partition in _assigned(tables):  # otherwise no worker reported an assignment of it
            late += [(partition, *span) for span in _late(taken, _assigned(tables)[partition])]
    if not late:  # speed: what follows finds nothing then
        return None
    spans = small(tables.spark, late, "partition int, from bigint, until bigint")
    inside = seen.join(F.broadcast(spans), "partition").where("offset >= from AND (until IS NULL OR offset < until)")
    return inside.drop("from", "until").persist()


def _late(
    taken: Sequence[tuple[int, tuple[int, int]]], assigned: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int | None]]:
    """Yield the ranges (first offset, end) of the group's log in which a member committed without an assignment.

    A turn is a sequence of commits by one member. Each turn must have an assignment after that of the previous turn. A
    turn without one is a zombie's, and the next turn is compared with the last turn that had one. The end is the
    offset at which the next turn begins; None if there is none.
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
    """Return the members (worker, incarnation) that each input partition was assigned to, as they learned it."""
    found: dict[int, list[tuple[int, int]]] = {}
    for event in sorted(tables.events.of(Assigned), key=lambda each: each.t):
        for partition in event.partitions:
            found.setdefault(partition, []).append((event.worker, event.incarnation))
    return found


def outputs(tables: Tables) -> list[DataFrame]:
    """Return the outputs that zombies wrote, each frame with the columns of `tables.outputs`."""
    found = []
    late, positions = by_epoch(tables), by_group(tables)
    if late is not None:
        places = late.select("topic", "partition", F.explode(F.expr("sequence(offset, last)")).alias("offset"))
        found.append(tables.outputs.join(places, PLACE, "left_semi"))
    if positions is not None:
        found.append(tables.outputs.join(positions.select(*TRANSACTION).distinct(), TRANSACTION, "left_semi"))
    return found


def moved(tables: Tables) -> set[int]:
    """Return the input partitions whose last committed offset was committed by a zombie."""
    positions = by_group(tables)
    if positions is None:
        return set()
    last = tables.commits.where("fate = 'visible'").groupBy("partition").agg(F.max("offset").alias("offset"))
    return {row["partition"] for row in rows(positions.join(last, ["partition", "offset"]).select("partition"))}


def _judge(tables: Tables) -> Judged:
    findings = []
    late, positions = by_epoch(tables), by_group(tables)
    if late is not None:
        says = "committed batches come after a batch or marker of a higher epoch of the same producer id"
        findings += finding(tables, "zombie-write", says, late, partial(_batch, tables))
    if positions is not None:
        says = "offsets were committed by a group member after its successor had committed, with no assignment back"
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
