"""Give the spans of a run's logs, each with the decision of the transaction coordinator that it belongs to.

A span is what one producer id wrote into one partition between two of its markers (`decisions`). The spans are those of
the leaders of the judged partitions, and of the groups' partitions of __consumer_offsets.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceproof.harness.record.tables import STATES
from onceproof.verifiers.evidence import decisions, matching, rules
from onceproof.verifiers.evidence.cached import cached
from onceproof.verifiers.evidence.decisions import Lane, Span
from onceproof.verifiers.evidence.frames import columns, rows, small
from onceproof.verifiers.evidence.tables import Tables

OFFSETS = "__consumer_offsets"


@dataclass(frozen=True, kw_only=True)
class Log:
    """The matched lanes of a run, and the number of the decisions."""

    lanes: list[Lane]
    decisions: int


def states(tables: Tables) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table `states`, in the order of the coordinators' logs."""
    path = tables.folder / "tables" / "states.parquet"
    STATES.check([path])
    return decisions.rows(path)


@cached
def matched(tables: Tables) -> Log:
    """Return the spans of the run, matched with the coordinators' decisions."""
    decided = decisions.decisions(states(tables))
    found = _spans(tables, set(decided))
    cut = {f"{each['topic']}/{each['partition']}" for each in tables.pinned if each["start"]}
    read = {f"{each['topic']}/{each['partition']}" for each in (*tables.pinned, *tables.facts["internal"])}
    known = {
        producer: [each.within(read) for each in sorted(mine, key=lambda each: each.offset)]
        for producer, mine in decided.items()
    }
    lanes = list(matching.lanes(found, known, partial=tables.gone_from(rules.COORDINATORS) > 0, cut=cut))
    return Log(lanes=lanes, decisions=sum(map(len, known.values())))


def _spans(tables: Tables, known: set[int]) -> dict[tuple[str, int], list[Span]]:
    """Return ("topic/partition", producer id) → spans, in any order.

    In a partition of __consumer_offsets, other groups' transactions are left out: those of producers that are neither
    known to the coordinators as writers of the judged topics nor committed offsets for a group of the pipeline.
    """
    whose = {row["producer_id"] for row in rows(tables.commits.select("producer_id").distinct())} | known
    found = of_logs(tables.of_leaders((*tables.pinned, *tables.facts["internal"])))
    return {
        (place, producer): mine
        for (place, producer), mine in found.items()
        if producer in whose or not place.startswith(f"{OFFSETS}/")
    }


def of_logs(batches: DataFrame) -> dict[tuple[str, int], list[Span]]:
    """Return ("topic/partition", producer id) → spans, in any order; `batches` are of one replica of each partition."""
    lane = ["topic", "partition", "producer_id"]
    ended = batches.where("transactional OR control IS NOT NULL").selectExpr(
        *lane,
        "coalesce(marker, IF(control IS NULL, NULL, first)) AS marker",
        "IF(control IS NULL, first, NULL) AS first",
        "IF(control IS NULL, producer_epoch, NULL) AS data_epoch",
        "control",
        "IF(control IS NULL, NULL, producer_epoch) AS epoch",
        "coordinator_epoch",
    )
    made = ended.groupBy(*lane, "marker").agg(
        F.min("first").alias("first"),
        F.count("first").alias("batches"),
        F.min("data_epoch").alias("lowest"),
        F.max("data_epoch").alias("highest"),
        F.max("control").alias("control"),
        F.max("epoch").alias("epoch"),
        F.max("coordinator_epoch").alias("coordinator_epoch"),
    )
    spans = made.selectExpr(
        *lane,
        "coalesce(first, marker)",
        "batches",
        "coalesce(lowest, -1)",
        "coalesce(highest, -1)",
        "marker",
        "coalesce(control = 'commit', false)",
        "coalesce(epoch, -1)",
        "coalesce(coordinator_epoch, -1)",
    )
    found: dict[tuple[str, int], list[Span]] = defaultdict(list)
    for topic, partition, producer_id, *of_span in zip(*columns(spans), strict=True):
        mine = found[f"{topic}/{partition}", producer_id]
        mine.append(Span(mine[0].producer_id if mine else producer_id, *of_span))  # speed: they share the number
    return found


@cached
def owners(tables: Tables) -> DataFrame:
    """Return the transaction of each span that a decision ended, as a small frame.

    Columns: topic (the name on the cluster), partition, producer_id, marker, tx (the decision's `number`).
    """
    columns = "topic string, partition int, producer_id bigint, marker bigint, tx bigint"
    return small(tables.spark, _owners(matched(tables).lanes), columns)


def _owners(lanes: Iterable[Lane]) -> Iterator[tuple[str, int, int, int | None, int]]:
    """Yield the rows of `owners`."""
    for lane in lanes:
        topic, _, partition = lane.place.rpartition("/")
        for span, decision in zip(lane.spans, lane.of, strict=True):
            if decision is None:
                continue
            if span.lowest == span.highest == decision.data_epoch:
                yield topic, int(partition), span.producer_id, span.marker, decision.number
