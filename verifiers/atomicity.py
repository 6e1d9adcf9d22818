"""Check that each transaction is all or nothing.

    aborted-read        a read_committed reader reads an output of a transaction that was aborted (Adya's G1a): the
                        output is in a batch that the log shows as aborted or open; or it was made from a record of the
                        intermediate topic that is, or from an input that the generator aborted on purpose; or its
                        worker never called commit; or the live observer read it before its worker called commit
    torn-transaction    some of a transaction's outputs are visible and some are not, within a topic or across topics

A transaction's manifest lists the offsets that the brokers acknowledged, in each partition. The log shows to whom they
belong and what became of them: the batch at the first of these offsets names the producer, and the batches of that
producer in the range are visible, aborted, open or absent.

    transaction 7 of worker-1: stock/2 offsets 10..19, payment/4 offsets 30..39
      both visible, or both aborted                       no anomaly
      stock/2 visible, payment/4 aborted                  torn-transaction: payment/4 offset 30
      both visible, commit was never called               aborted-read: all of them; also if the worker was killed
                                                          while it waited at the phase before-commit
      both visible, read 20 ms before commit was called   aborted-read: those that were read
      commit was called and failed (`info`), all visible  no anomaly: the commit took effect, its response was lost

`info` excuses an aborted-read if commit was called; it does not excuse a torn transaction. A part of a transaction is
not judged if its partition is incomplete, if it is below the log start, or if the worker did not learn its offsets.
"""

from functools import partial, reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceproof.harness.model.contract import BAIT
from onceproof.harness.record.events import AtPhase, WentOn
from onceproof.harness.record.results import Finding
from onceproof.verifiers import completeness
from onceproof.verifiers.evidence import bare, fingerprints
from onceproof.verifiers.evidence.cached import cached
from onceproof.verifiers.evidence.check import LOG, Check, Judged
from onceproof.verifiers.evidence.findings import Sample, finding, place, told
from onceproof.verifiers.evidence.fingerprints import SPAN
from onceproof.verifiers.evidence.frames import small
from onceproof.verifiers.evidence.tables import PLACE, TRANSACTION, Tables

CLAIM = "the outputs of each transaction are all visible or all hidden, and no output of an aborted one is visible"
# Batches and manifests are joined by buckets of this many offsets, so that a join on a range is one on equal buckets.
_BUCKET = 4096
_CALLED = {"worker": "int", "incarnation": "int", "transaction": "bigint", "called": "double"}
_CLOCK_S = 0.001  # the observer's times are rounded to this


@cached
def aborted(tables: Tables) -> DataFrame | None:
    """Return outputs that a read_committed reader read although it must not; None if there are none.

    Columns: topic, partition, offset, number (a row for each reader's number if the two differ).
    """
    hidden = tables.log.where("fate != 'visible'").selectExpr("topic", "partition", "first", "last")
    offsets = hidden.selectExpr("topic", "partition", "explode(sequence(first, last)) AS offset")
    found = _seen_too_soon(tables, hidden)
    if _near_hidden(tables, hidden):  # speed: otherwise no output is in a hidden batch
        found.append(tables.outputs.join(F.broadcast(offsets), PLACE, "left_semi"))
    if tables.workload.intermediate_topic:  # speed: otherwise there is no intermediate topic
        found.append(_made_of_hidden(tables, offsets))
    if tables.workload.contract is not None:
        found.append(tables.outputs.where(f"number >= {BAIT}"))
    if tables.workload.claim.transactional:
        found += _never_committed(tables)
    seen = [each.select(*PLACE, "number") for each in found]
    everything = reduce(DataFrame.unionAll, seen).distinct() if seen else None
    outside = bare.outputs(tables)
    if everything is not None and outside is not None:  # outputs that are in no transaction were not aborted
        everything = everything.join(outside.select(*PLACE), PLACE, "left_anti")
    return None if everything is None else tables.unless_empty(everything)


def _seen_too_soon(tables: Tables, hidden: DataFrame) -> list[DataFrame]:
    """Return what the live observer read in batches that are not visible, or before commit was called.

    In the latter case another client made the transaction visible before its own worker completed it. Both times come
    from the monotonic clock of one machine. The observer takes its time after it has received the record, so that time
    cannot be too early.
    """
    if tables.observed is None:
        return []
    spans = hidden.selectExpr("*", *(f"cast(NULL AS {kind}) AS {name}" for name, kind in _CALLED.items()))
    if tables.workload.claim.transactional:
        called = tables.transactions.where("event = 'invoke'").groupBy(*TRANSACTION).agg(F.expr("min(t) AS called"))
        own = told_parts(tables).join(tables.few(called), TRANSACTION)
        spans = spans.unionByName(own.drop("records"))
    seen = tables.unless_empty(_sighted(tables, spans).where(f"called IS NULL OR at + {_CLOCK_S} < called"))
    if seen is None:
        return []
    early = tables.outputs.join(F.broadcast(seen), [*PLACE, *TRANSACTION], "left_semi")
    return [tables.observed.join(seen.where("called IS NULL"), PLACE, "left_semi"), early]


def _sighted(tables: Tables, spans: DataFrame) -> DataFrame:
    """Return the offsets of `spans` that the live observer read, and when (`at`), one row for each offset.

    `spans` has topic, partition, first and last; its further columns are kept.
    """
    seen = fingerprints.sightings(tables)
    assert seen is not None
    cut = spans.selectExpr("*", _buckets("first", "last", SPAN, "span")).selectExpr(
        "*",
        f"cast(greatest(first - span * {SPAN}, 0) AS int) AS low",
        f"cast(least(last - span * {SPAN}, {SPAN - 1}) AS int) AS high",
    )
    asked = cut.selectExpr("*", f"shiftleft(shiftrightunsigned(-1L, {SPAN - 1} - high + low), low) AS asked")
    both = seen.join(tables.few(asked), ["topic", "partition", "span"])
    bits = f"filter(sequence(0, {SPAN - 1}), bit -> getbit(seen & asked, bit) = 1)"
    return both.selectExpr("*", f"explode(transform({bits}, bit -> bit + span * {SPAN})) AS offset")


def _made_of_hidden(tables: Tables, hidden: DataFrame) -> DataFrame:
    """Return outputs made from an aborted record of the intermediate topic, which its reader must not have read."""
    there = hidden.where(F.col("topic") == tables.workload.intermediate_topic).select(
        F.col("partition").alias("intermediate_partition"), F.col("offset").alias("intermediate_offset")
    )
    return tables.outputs.join(F.broadcast(there), ["intermediate_partition", "intermediate_offset"], "left_semi")


def _near_hidden(tables: Tables, hidden: DataFrame) -> bool:
    """Return whether any contiguous range of outputs overlaps a batch that is not visible."""
    spans = hidden.selectExpr("topic", "partition", "first AS h_first", "last AS h_last", _buckets("first", "last"))
    contiguous_ranges = fingerprints.output_ranges(tables).selectExpr(
        "topic", "partition", "first", "last", _buckets("first", "last")
    )
    near = contiguous_ranges.join(tables.few(spans), ["topic", "partition", "bucket"])
    return not near.where("h_first <= last AND first <= h_last").isEmpty()  # speed: the answer may be yes too often


def _never_committed(tables: Tables) -> list[DataFrame]:
    """Return visible outputs of transactions whose worker never called commit."""
    wrong = given_up(tables)
    if fingerprints.output_ranges(tables).join(tables.few(wrong), TRANSACTION, "left_semi").isEmpty():  # speed
        return []
    return [tables.outputs.join(F.broadcast(wrong), TRANSACTION, "left_semi")]


@cached
def given_up(tables: Tables) -> DataFrame:
    """Return transactions whose worker never called commit: worker, incarnation, transaction.

    The worker aborted them, or ended before it called commit, or was stopped at the phase before-commit and never
    continued. (A worker that reported the call twice had called it before that phase.) If events of a process are
    missing, its call of commit may be among them.
    """
    ended = tables.transactions.groupBy(*TRANSACTION).agg(
        F.expr("count_if(event = 'invoke') AS invoked"), F.expr("coalesce(max(type = 'fail'), false) AS failed")
    )
    stayed = small(tables.spark, _stayed(tables), "worker int, incarnation int, transaction bigint")
    stayed = ended.join(F.broadcast(stayed), TRANSACTION, "left_semi").where("invoked = 1")
    untold = small(tables.spark, sorted(tables.untold), "worker int, incarnation int")
    silent = ended.where("invoked = 0").unionAll(stayed).select(*TRANSACTION)
    silent = silent.join(F.broadcast(untold), ["worker", "incarnation"], "left_anti").select(*TRANSACTION)
    return tables.gathered(silent.unionAll(ended.where("failed").select(*TRANSACTION)).distinct())


def _stayed(tables: Tables) -> list[tuple[int, int, int]]:
    """Return transactions whose worker was stopped at the phase before-commit and never continued."""
    on = {(*each.process, each.fault) for each in tables.events.of(WentOn)}
    return [
        (each.worker, each.incarnation, each.transaction)
        for each in tables.events.of(AtPhase, phase="before-commit")
        if (*each.process, each.fault) not in on
    ]


@cached
def torn(tables: Tables) -> DataFrame | None:
    """Return the parts of torn transactions; None if there is no torn transaction.

    Columns: worker, incarnation, transaction, topic, partition, first, last, records, visible.
    """
    return tables.unless_empty(_parts_in_log(tables).where("seen > 0 AND seen < all").drop("seen", "all"))


@cached
def seen(tables: Tables) -> DataFrame:
    """Return the transactions of which a record is visible: worker, incarnation, transaction.

    These are the transactions that the headers of outputs name, and those with a visible part in their manifest, which
    may lie in the intermediate topic.
    """
    headers = fingerprints.output_ranges(tables).select(*TRANSACTION)
    parts = _parts_in_log(tables).where("seen > 0").select(*TRANSACTION)
    return tables.gathered(headers.unionAll(parts).distinct())


@cached
def _parts_in_log(tables: Tables) -> DataFrame:
    """Return `told_parts` with the number of their records that are visible, and two sums over their transaction.

    Further columns: visible (records of the part), seen (visible records of the transaction), all (its records).
    """
    parts = told_parts(tables)
    in_log = tables.log.where("control IS NULL").selectExpr(  # speed: no output has the offset of a marker
        "topic",
        "partition",
        "first AS b_first",
        "last AS b_last",
        "producer_id",
        "fate",
        _buckets("first", "last"),
    )
    there = f"least(last, b_last, (bucket + 1) * {_BUCKET} - 1) - greatest(first, b_first, bucket * {_BUCKET}) + 1"
    part = [*TRANSACTION, "topic", "partition"]
    visible = (
        tables.few(parts.selectExpr("*", _buckets("first", "last")))
        .join(in_log, ["topic", "partition", "bucket"])
        .where("b_first <= last AND first <= b_last")
        .groupBy(*part, "producer_id")
        .agg(
            F.expr(f"sum(CASE WHEN fate = 'visible' THEN {there} ELSE 0 END) AS visible"),
            F.expr("max(b_first <= first) AS its_own"),
        )
        .where("its_own")
        .drop("its_own", "producer_id")
    )
    judged = parts.join(tables.few(visible), part, "left").selectExpr(
        "* EXCEPT (visible)", "coalesce(visible, 0L) AS visible"
    )
    together = f"OVER (PARTITION BY {', '.join(TRANSACTION)})"
    sums = f"sum(least(visible, records)) {together} AS seen", f"sum(records) {together} AS all"
    return tables.gathered(judged.selectExpr("*", *sums))


@cached
def told_parts(tables: Tables) -> DataFrame:
    """Return the part of each manifest in each partition, where it can be judged.

    Columns: worker, incarnation, transaction, topic, partition, records, first, last.
    """
    told = tables.transactions.selectExpr(*TRANSACTION, "explode(outputs) AS (at, span)")
    parts = told.select(
        *TRANSACTION,
        tables.role_of(F.substring_index("at", "/", 1)).alias("topic"),
        F.expr("cast(substring_index(at, '/', -1) AS int) AS partition"),
        F.expr("span[0] AS records"),
        F.expr("span[1] AS first"),
        F.expr("span[2] AS last"),
    ).distinct()
    known = parts.join(tables.few(tables.starts), ["topic", "partition"]).where("first >= start").drop("start")
    return tables.gathered(known.join(tables.few(completeness.frame(tables)), ["topic", "partition"], "left_anti"))


def _buckets(first: str, last: str, size: int = _BUCKET, name: str = "bucket") -> str:
    """Return Spark SQL for one row for each bucket of `size` offsets that the range from `first` to `last` touches."""
    return f"explode(sequence({first} div {size}, {last} div {size})) AS {name}"


def torn_outputs(tables: Tables) -> DataFrame | None:
    """Return the visible outputs of torn transactions; None if there is no torn transaction."""
    parts = torn(tables)
    if parts is None:
        return None
    return tables.outputs.join(parts.select(*TRANSACTION).distinct(), TRANSACTION, "left_semi")


def _judge(tables: Tables) -> Judged:
    findings: list[Finding] = []
    seen = aborted(tables)
    if seen is not None:
        header = tables.outputs.select(*PLACE, "source_partition", "source_offset", *TRANSACTION)
        findings += finding(
            tables,
            "aborted-read",
            "outputs were read although the log shows them as aborted or open, or their worker had not called commit, "
            "or outputs were made from aborted inputs",
            seen.groupBy(*PLACE).agg(F.max("number").alias("number")).join(header, PLACE, "left"),
            partial(_seen, tables),
        )
    parts = torn(tables)
    if parts is not None:
        hidden = parts.where("visible < records").withColumn("offset", F.col("first"))
        findings += finding(
            tables,
            "torn-transaction",
            "parts of transactions are not visible although other parts of the same transactions are",
            hidden,
            partial(_part, tables),
        )
    return Judged(compared=tables.sizes("transactions", "outputs", "batches"), findings=findings)


def _seen(tables: Tables, row: Any) -> Sample:
    return {**place(tables, row), "number": row["number"], "header": told(row)}


def _part(tables: Tables, row: Any) -> Sample:
    return {
        "topic": tables.topic(row["topic"]),
        "partition": row["partition"],
        "offset": row["first"],
        "last": row["last"],
        "worker": row["worker"],
        "incarnation": row["incarnation"],
        "transaction": row["transaction"],
        "acknowledged": row["records"],
        "visible": row["visible"],
    }


CHECK = Check(name="atomicity", claim=CLAIM, run=_judge, needs=(LOG,))
