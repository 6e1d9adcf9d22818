"""Is each transaction all or nothing?

    aborted-read        a read_committed reader sees an output of a transaction that was aborted (Adya's G1a): its
                        offset lies in a batch that the log shows as aborted or open, or it was made of one that does
                        in a topic between, or the worker never called commit, or the live observer saw it before that
    torn-transaction    part of a transaction's outputs is visible, part is not: within a topic or across topics

A transaction's manifest says which offsets it was acknowledged, in each partition. Whose they are and what became of
them, the log says: the batch at the first of them names the producer, and that producer's batches among them are
visible, aborted, open or not there at all.

    transaction 7 of worker-1: stock/2 offsets 10..19, payment/4 offsets 30..39
      both visible, or both aborted                       whole
      stock/2 visible, payment/4 aborted                  torn-transaction: payment/4 offset 30
      both visible, no commit was ever called             aborted-read: all of them; so, too, when its worker was
                                                          killed while it stood right before the call
      both visible, seen 20 ms before commit was called   aborted-read: those that were seen
      commit was called and failed (`info`), all visible  whole: it took effect, its answer was lost

`info` excuses an aborted-read where commit was called; it excuses nothing of a torn transaction. Parts in incomplete
partitions, below a log start, or of which the worker was not told the offsets, are not judged.
"""

from functools import partial, reduce
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from harness.verdict import CheckResult, Finding
from verifiers import completeness, summary
from verifiers.findings import Sample, finding, place, told
from verifiers.spark import small, unless_empty
from verifiers.tables import PLACE, TRANSACTION, Tables, kept, worker_of

CLAIM = "each transaction's outputs are all visible or none is, and none that was aborted is"
# Batches and manifests meet in buckets of offsets, so that a join on a range is one on equal buckets.
_BUCKET = 4096
_SMALL = 64
_CLOCK_S = 0.001  # to which the observer's times are rounded


@kept
def aborted(tables: Tables) -> DataFrame | None:
    """Outputs that a reader saw and must not have seen: topic, partition, offset, number (of each reader, where they
    differ); None when there are none."""
    hidden = tables.log.where("fate != 'visible'").select(
        "topic", "partition", F.explode(F.expr("sequence(first, last)")).alias("offset")
    )
    found = [] if tables.observed is None else [tables.observed.join(F.broadcast(hidden), PLACE, "left_semi")]
    if _near_hidden(tables):  # speed: otherwise no output stands in a hidden batch
        found.append(tables.outputs.join(F.broadcast(hidden), PLACE, "left_semi"))
    between = _made_of_hidden(tables, hidden)
    if between is not None:
        found.append(between)
    if tables.workload.wiring.transactional:
        found += [each for each in (_never_committed(tables), _seen_early(tables)) if each is not None]
    seen = [each.select(*PLACE, "number") for each in found]
    return unless_empty(reduce(DataFrame.unionAll, seen).distinct()) if seen else None


def _made_of_hidden(tables: Tables, hidden: DataFrame) -> DataFrame | None:
    """Outputs made of a record of the topic between that was aborted: its reader must not have seen it."""
    if not tables.workload.via:  # speed: nothing is between
        return None
    there = hidden.where(F.col("topic") == tables.workload.via).select(
        F.col("partition").alias("via_partition"), F.col("offset").alias("via_offset")
    )
    return tables.outputs.join(F.broadcast(there), ["via_partition", "via_offset"], "left_semi")


def _seen_early(tables: Tables) -> DataFrame | None:
    """Outputs that the live observer saw before their worker called commit: a transaction that was made visible by
    somebody else, and then completed. Both times are of one machine's monotonic clock, and the observer's is when it
    had the record, so it cannot be too low."""
    if tables.observed is None:
        return None
    called = tables.transactions.where("event = 'invoke'").groupBy(*TRANSACTION).agg(F.min("t").alias("called"))
    spans = told_parts(tables).join(called, TRANSACTION).select(
        "topic", "partition", *TRANSACTION, "first", "last", "called", _buckets("first", "last", _SMALL).alias("bucket")
    )
    seen = tables.observed.withColumn("bucket", F.expr(f"offset div {_SMALL}"))
    near = seen.join(F.broadcast(spans), ["topic", "partition", "bucket"])
    near = near.where("offset >= first AND offset <= last")  # speed: what is not of that transaction is left out below
    early = unless_empty(near.where(f"at + {_CLOCK_S} < called").select(*PLACE, *TRANSACTION))
    if early is None:
        return None
    return tables.outputs.join(F.broadcast(early), [*PLACE, *TRANSACTION], "left_semi")


def _near_hidden(tables: Tables) -> bool:
    """Whether any stretch of outputs has a batch that is not visible between its first and its last offset."""
    hidden = tables.log.where("fate != 'visible'").select(  # speed: the answer may be yes too often
        "topic", "partition", F.col("first").alias("h_first"), F.col("last").alias("h_last"),
        _buckets("first", "last").alias("bucket"),
    )  # fmt: skip
    stretches = summary.output_stretches(tables).select(
        "topic", "partition", "first", "last", _buckets("first", "last").alias("bucket")
    )
    near = stretches.join(F.broadcast(hidden), ["topic", "partition", "bucket"])
    return not near.where("h_first <= last AND first <= h_last").isEmpty()  # speed: as above


def _never_committed(tables: Tables) -> DataFrame | None:
    """Visible outputs of transactions whose worker never called commit."""
    wrong = F.broadcast(given_up(tables))
    seen = unless_empty(summary.output_stretches(tables).join(wrong, TRANSACTION).select(*TRANSACTION).distinct())
    return None if seen is None else tables.outputs.join(seen, TRANSACTION, "left_semi")


@kept
def given_up(tables: Tables) -> DataFrame:
    """Transactions whose worker never called commit: worker, incarnation, transaction. It gave them up, or ended before
    it came to that, or stood before it for the nemesis and never went on."""
    ended = tables.transactions.groupBy(*TRANSACTION).agg(
        F.max((F.col("event") == "invoke").cast("int")).alias("invoked"),
        F.max((F.col("type") == "fail").cast("int")).alias("failed"),
    )
    stayed = small(tables.spark, _stayed(tables), "worker int, incarnation int, transaction bigint")
    return ended.where("invoked = 0 OR failed = 1").select(*TRANSACTION).unionAll(stayed).distinct().persist()


def _stayed(tables: Tables) -> list[tuple[int, int, int]]:
    """Those that stopped right before they called commit, and ended there. (Where each topic has a commit of its own,
    another one was called before.)"""
    if tables.workload.wiring.each_topic:
        return []
    on = {(e["source"], e["incarnation"], e["fault"]) for e in tables.events if e["event"] == "went-on"}
    return [
        (worker_of(e), e["incarnation"], e["transaction"])
        for e in tables.events if e["event"] == "at-phase" and e["phase"] == "before-commit"
        and (e["source"], e["incarnation"], e["fault"]) not in on
    ]  # fmt: skip


@kept
def torn(tables: Tables) -> DataFrame | None:
    """The parts of torn transactions: worker, incarnation, transaction, topic, partition, first, last, records,
    visible; None when every transaction is whole."""
    parts = told_parts(tables)
    in_log = tables.log.where("control IS NULL").select(  # speed: no record stands where a marker does
        "topic", "partition", F.col("first").alias("b_first"), F.col("last").alias("b_last"), "producer_id", "fate",
        _buckets("first", "last").alias("bucket"),
    )  # fmt: skip
    low = F.greatest("first", "b_first", F.col("bucket") * _BUCKET)
    high = F.least("last", "b_last", (F.col("bucket") + 1) * _BUCKET - 1)
    part = [*TRANSACTION, "topic", "partition"]
    visible = (
        F.broadcast(parts.withColumn("bucket", _buckets("first", "last")))
        .join(in_log, ["topic", "partition", "bucket"])
        .where("b_first <= last AND first <= b_last")
        .groupBy(*part, "producer_id")
        .agg(F.sum(F.when(F.col("fate") == "visible", high - low + 1).otherwise(0)).alias("visible"),
             F.max(F.expr("b_first <= first")).alias("its_own"))
        .where("its_own").drop("its_own", "producer_id")
    )  # fmt: skip
    judged = parts.join(F.broadcast(visible), part, "left").withColumn("visible", F.coalesce("visible", F.lit(0)))
    together = Window.partitionBy(*TRANSACTION)
    seen, everything = F.sum(F.least("visible", "records")).over(together), F.sum("records").over(together)
    return unless_empty(
        judged.withColumn("seen", seen).withColumn("all", everything).where("seen > 0 AND seen < all")
        .drop("seen", "all")
    )  # fmt: skip


@kept
def told_parts(tables: Tables) -> DataFrame:
    """What each manifest says of each partition, where it can be judged: worker, incarnation, transaction, topic,
    partition, records, first, last."""
    told = tables.transactions.select(*TRANSACTION, F.explode("outputs").alias("at", "span"))
    parts = told.select(
        *TRANSACTION,
        tables.role_of(F.regexp_extract("at", r"^(.*)/\d+$", 1)).alias("topic"),
        F.substring_index("at", "/", -1).cast("int").alias("partition"),
        F.col("span")[0].alias("records"), F.col("span")[1].alias("first"), F.col("span")[2].alias("last"),
    ).distinct()  # fmt: skip
    known = parts.join(F.broadcast(tables.starts), ["topic", "partition"]).where("first >= start").drop("start")
    return known.join(F.broadcast(completeness.frame(tables)), ["topic", "partition"], "left_anti").persist()


def _buckets(first: str, last: str, size: int = _BUCKET) -> Any:
    return F.explode(F.expr(f"sequence({first} div {size}, {last} div {size})"))


def torn_outputs(tables: Tables) -> DataFrame | None:
    """The visible outputs of torn transactions."""
    parts = torn(tables)
    if parts is None:
        return None
    return tables.outputs.join(parts.select(*TRANSACTION).distinct(), TRANSACTION, "left_semi")


def check(tables: Tables) -> CheckResult:
    findings: list[Finding] = []
    seen = aborted(tables)
    if seen is not None:
        header = tables.outputs.select(*PLACE, "source_partition", "source_offset", *TRANSACTION)
        findings += finding(
            tables, "aborted-read", "outputs were read that are aborted or open in the log, or whose worker had "
            "not called commit", seen.groupBy(*PLACE).agg(F.max("number").alias("number")).join(header, PLACE, "left"),
            partial(_seen, tables),
        )  # fmt: skip
    parts = torn(tables)
    if parts is not None:
        hidden = parts.where("visible < records").withColumn("offset", F.col("first"))
        findings += finding(
            tables, "torn-transaction", "parts of transactions are not visible although others are", hidden,
            partial(_part, tables),
        )  # fmt: skip
    return CheckResult(name="atomicity", claim=CLAIM, findings=findings)


def _seen(tables: Tables, row: Any) -> Sample:
    return {**place(tables, row),
            "number": row["number"], "header": told(row)}  # fmt: skip


def _part(tables: Tables, row: Any) -> Sample:
    return {
        "topic": tables.topic(row["topic"]), "partition": row["partition"], "offset": row["first"],
        "last": row["last"], "worker": row["worker"], "incarnation": row["incarnation"],
        "transaction": row["transaction"], "acknowledged": row["records"], "visible": row["visible"],
    }  # fmt: skip


CHECKS = (check,)
