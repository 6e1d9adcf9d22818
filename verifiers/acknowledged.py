"""Check that each commit that a worker was told had succeeded is in the log, as a transaction of its own.

    torn-transaction    a commit was acknowledged, but neither an output nor an offset of its transaction is visible; or
                        one decision of a coordinator ended the outputs of two acknowledged commits

    worker 0: commit of transaction 7 succeeded       output/3: transaction 7 aborted, its inputs done again by 8
    worker 0: commits of 7 and of 8 succeeded         output/3: [7: 10..19] [8: 20..29] commit

The end state may be right in both cases: each input may have one output. But a broker that acknowledges a commit must
not lose it (KIP-98), and a failure between the two commits would have lost or duplicated outputs. Where inputs of the
transaction lack their output, they are `lost`, and there is no finding here.
"""

from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceproof.harness.record.results import Finding
from onceproof.verifiers import atomicity
from onceproof.verifiers.evidence import membership, suspects
from onceproof.verifiers.evidence.check import COORDINATOR_LOG, LOG, TRANSACTIONAL, Check, Judged
from onceproof.verifiers.evidence.findings import Sample, finding
from onceproof.verifiers.evidence.tables import TRANSACTION, Tables

CLAIM = "each acknowledged commit is in the log, as a transaction of its own"
_VANISHED = "commits were acknowledged, but nothing of their transactions is visible"
_SHARED = "one decision of a coordinator ended the outputs of several acknowledged commits"


def _vanished(tables: Tables, succeeded: DataFrame) -> DataFrame:
    """Return the first part of each acknowledged transaction of which nothing is visible (`atomicity.told_parts`)."""
    committed = tables.all_commits.where("fate IN ('visible', 'open')").select(*TRANSACTION)
    seen = atomicity.seen(tables).unionAll(committed).distinct()
    parts = atomicity.told_parts(tables).join(tables.few(succeeded), TRANSACTION, "left_semi")
    gone = parts.join(tables.few(seen), TRANSACTION, "left_anti")
    suspected = suspects.suspects(tables)
    if suspected is not None:
        spans = tables.transactions.select(*TRANSACTION, F.explode("sources").alias("p", "span"))
        inside = F.expr("from_p = cast(p AS int) AND from_o >= span[0] AND from_o < span[1]")
        missing = suspected.where("missing")
        gone = gone.join(spans.join(missing, inside).select(*TRANSACTION).distinct(), TRANSACTION, "left_anti")
    first = F.min(F.struct("topic", "partition", "first", "last", "records")).alias("part")
    return gone.groupBy(*TRANSACTION).agg(first).select(*TRANSACTION, "part.*").withColumn("offset", F.col("first"))


def _shared(tables: Tables, succeeded: DataFrame) -> DataFrame:
    """Return the first piece of each acknowledged transaction but the first of those that share a decision."""
    pieces = membership.pieces(tables).where("tx IS NOT NULL")
    mine = pieces.join(tables.few(succeeded), TRANSACTION, "left_semi")
    first = F.min(F.struct("topic", "partition", "first", "last")).alias("part")
    alone = F.expr(f"count(*) OVER (PARTITION BY {', '.join(TRANSACTION)}) AS decisions")
    each = mine.groupBy("tx", *TRANSACTION).agg(first).select("*", alone).where("decisions = 1")
    nth = F.expr("row_number() OVER (PARTITION BY tx ORDER BY worker, incarnation, transaction)")
    return each.withColumn("nth", nth).where("nth > 1").select("*", "part.*").withColumn("offset", F.col("first"))


def _judge(tables: Tables) -> Judged:
    succeeded = tables.gathered(tables.transactions.where("type = 'ok'").select(*TRANSACTION).distinct())
    findings: list[Finding] = []
    for says, frame in ((_VANISHED, _vanished(tables, succeeded)), (_SHARED, _shared(tables, succeeded))):
        findings += finding(tables, "torn-transaction", says, frame, partial(_sample, tables))
    return Judged(compared=tables.sizes("transactions", "outputs"), findings=findings)


def _sample(tables: Tables, row: Any) -> Sample:
    return {
        "topic": tables.topic(row["topic"]),
        "partition": row["partition"],
        "offset": row["offset"],
        "last": row["last"],
        "worker": row["worker"],
        "incarnation": row["incarnation"],
        "transaction": row["transaction"],
    }


CHECK = Check(name="acknowledged", claim=CLAIM, run=_judge, needs=(TRANSACTIONAL, LOG, COORDINATOR_LOG))
