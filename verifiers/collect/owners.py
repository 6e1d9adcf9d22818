"""Say which transaction of an application wrote each output and each committed offset, from its requests.

The outputs of onceproof's own workers name their input and their transaction in a header, and their commits do so in
the metadata. An application writes neither. So the number in an output's payload gives the input, and the producer id,
epoch and sequence number of its batch the request that sent it (`record/narrator`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from onceproof.harness.record import provenance
from onceproof.harness.record.narrator import Narrator
from onceproof.harness.record.tables import LEDGER
from onceproof.verifiers.evidence.frames import small

_COLUMNS = [
    *("topic", "partition", "broker", "first", "last"),
    *("producer_id", "producer_epoch", "sequence", "control", "crc"),
]


def ranges(
    narrator: Narrator, batches: Path, pinned: list[dict[str, Any]]
) -> dict[str, list[tuple[int, int, int, int]]]:
    """Return topic (on the cluster) → partition, first and last offset, and `told_1`, of batches with a known sender.

    `batches` is the table of the run's batches.
    """
    leaders = {(each["topic"], each["partition"]): each["leader"] for each in pinned}
    found: dict[str, list[tuple[int, int, int, int]]] = {}
    for row in pq.read_table(batches, columns=_COLUMNS).to_pylist():
        if row["control"] is not None or leaders.get((row["topic"], row["partition"])) != row["broker"]:
            continue
        key = row["producer_id"], row["producer_epoch"], row["topic"], row["partition"], row["sequence"]
        if senders := narrator.batches.get(key):
            # A broker that compresses batches anew, or sets their times, changes their CRC.
            packed = provenance.packed_owner(*senders.get(row["crc"], next(iter(senders.values()))))
            found.setdefault(row["topic"], []).append((row["partition"], row["first"], row["last"], packed))
    return found


def places(spark: SparkSession, ledger: Path, inputs: Callable[[], DataFrame]) -> DataFrame:
    """Return number and `told_0` of each input whose place is known.

    An input whose acknowledgement had no offset is where the records of the input topic have it first. `inputs` returns
    them. It is called only if there is such an input, in ledger mode as well.
    """
    sent = spark.read.schema(LEDGER.spark).parquet(str(ledger.absolute() / "sent-*.parquet"))
    packed = provenance.packed_place_sql("partition", "offset")
    placed = sent.where("offset IS NOT NULL").selectExpr("number", f"{packed} AS told_0")
    unplaced = sent.where("offset IS NULL").select("number")
    if unplaced.isEmpty():  # speed
        return placed
    first = inputs().join(F.broadcast(unplaced), "number", "left_semi").groupBy("number")
    return placed.unionAll(first.agg(F.expr(f"min({packed}) AS told_0")))


def named(
    spark: SparkSession, outputs: DataFrame, batches: list[tuple[int, int, int, int]], places: DataFrame
) -> DataFrame:
    """Return the outputs of a topic with `told_0` and `told_1` as if they had the provenance header.

    `told_0` is null if the place of the input with the output's number is not known, and `told_1` if no known request
    sent the batch. `places` is what the function of that name returns.
    """
    of_batch = small(spark, batches, "partition int, first bigint, last bigint, told_1 bigint")
    senders = of_batch.selectExpr("partition", "explode(sequence(first, last)) AS offset", "told_1")
    bare = outputs.drop("told_0", "told_1")
    return bare.join(senders, ["partition", "offset"], "left").join(F.broadcast(places), "number", "left")


def of_commits(narrator: Narrator, rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table `commits` with worker, incarnation and transaction.

    If an offset was sent in several transactions of one producer id and epoch, they are taken in their order. Rows
    with the same marker are those of one transaction, whose client repeated a request.
    """
    waiting = {key: list(owners) for key, owners in narrator.positions.items()}
    last: dict[tuple[Any, ...], tuple[object, tuple[int | None, ...]]] = {}
    for row in rows:
        key = row["producer_id"], row["producer_epoch"], row["partition"], row["position"]
        owners, (marker, owner) = waiting.get(key, []), last.get(key, (None, (None, None, None)))
        if marker is None or marker != row["marker"]:
            owner = owners.pop(0) if len(owners) > 1 else next(iter(owners), (None, None, None))
        last[key] = row["marker"], owner
        yield {**row, **dict(zip(("worker", "incarnation", "transaction"), owner, strict=True))}
