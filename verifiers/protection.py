"""Check that outputs and committed offsets are in the transactions in which the pipeline claims to put them.

    unprotected    an output, or a committed offset, is outside of the transaction in which the claim puts it

    the claim: outputs and committed offsets are in one transaction
      output/3 offset 41 is in a batch that is not transactional                                  unprotected
      the offset 44 of input/3 was committed by the consumer, without a transaction               unprotected
      worker 0 put the outputs of its transaction 7 and the offset 44 into two transactions       unprotected

The log alone says what is in a transaction: the flag of a batch, its producer and its marker. That outputs and offsets
belong together, the headers and metadata of the workers say. Nothing has to break for such a finding: it names the
outputs and offsets that a failure at the wrong moment duplicates or loses.
"""

from functools import partial, reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceproof.harness.record.results import Finding
from onceproof.verifiers.evidence import bare, membership
from onceproof.verifiers.evidence.cached import cached
from onceproof.verifiers.evidence.check import COORDINATOR_LOG, LOG, TRANSACTIONAL, Check, Judged
from onceproof.verifiers.evidence.findings import Sample, finding, place, position, told
from onceproof.verifiers.evidence.tables import PLACE, TRANSACTION, Tables, over_earlier

CLAIM = "every output and every committed offset is in the transaction in which the pipeline claims to put it"
_SAYS_OUTPUTS = "outputs are outside of the transaction in which the pipeline claims to put them"
_SAYS_OFFSETS = "offsets were committed outside of the transaction in which the pipeline claims to put them"


@cached
def offsets(tables: Tables) -> DataFrame | None:
    """Return visible committed offsets that are not in the transaction of their outputs, as `membership.commits`.

    None if there are none.
    """
    if not tables.workload.commits_in_transactions:
        return None
    commits = membership.commits(tables)
    apart = _apart(tables) if tables.workload.sends_positions else None
    # A commit that leaves the position where it is, as a consumer's at its beginning, does nothing to any input.
    last = f"last(IF(fate = 'visible', position, NULL), true) {over_earlier(('topic', 'partition'), 'offset')}"
    moves = commits.selectExpr("*", f"coalesce({last}, 0L) AS last").where("position != last")
    outside = moves.where("NOT transactional").drop("last")
    if apart is not None:
        alone = apart.where("NOT shared").select("log", "offset")
        outside = outside.unionByName(commits.join(alone, ["log", "offset"], "left_semi"))
    return tables.unless_empty(outside)


@cached
def _apart(tables: Tables) -> DataFrame | None:
    """Return committed offsets whose worker put the outputs of the same transaction into another one; None without any.

    Columns: log, offset (of the commit), worker, incarnation, transaction, tx, other (the transaction of the outputs),
    and `shared`: whether some of its outputs are in the transaction of the commit.
    """
    return tables.unless_empty(
        reduce(DataFrame.unionAll, (_apart_in(tables, each) for each in membership.stages(tables)))
    )


def _apart_in(tables: Tables, stage: membership.Stage) -> DataFrame:
    of_outputs = stage.pieces.select(*TRANSACTION, F.col("tx").alias("other")).distinct()
    mine = membership.commits(tables).where("fate = 'visible'").select("log", "offset", *TRANSACTION, "tx")
    shared = F.expr("max(tx = other) OVER (PARTITION BY log, offset)")
    both = mine.join(tables.few(of_outputs), TRANSACTION).withColumn("shared", shared)
    return both.where("tx != other")


@cached
def strays(tables: Tables) -> DataFrame | None:
    """Return what workers put into another transaction than the offsets and other outputs of the same transaction.

    Columns: worker, incarnation, transaction, and tx (the other transaction). None if there is nothing.
    """
    apart = _apart(tables) if tables.workload.sends_positions else None
    if apart is None:
        return None
    return tables.unless_empty(apart.where("shared").select(*TRANSACTION, F.col("other").alias("tx")).distinct())


def _strays(tables: Tables) -> DataFrame | None:
    """Return what is in `strays`, with `PLACE` and, of outputs, the columns of `tables.outputs`; None without any."""
    wrong = strays(tables)
    if wrong is None:
        return None
    places = bare.offsets(membership.pieces(tables).join(wrong, [*TRANSACTION, "tx"], "left_semi"))
    return places.join(tables.outputs, PLACE, "left")


def _judge(tables: Tables) -> Judged:
    findings: list[Finding] = []
    for frame, sample in (
        (bare.outputs(tables), _output),
        (bare.between(tables), place),
        (_strays(tables), _output),
    ):
        if frame is not None:
            findings += finding(tables, "unprotected", _SAYS_OUTPUTS, frame, partial(sample, tables))
    wrong = offsets(tables)
    if wrong is not None:
        order = ("topic", "partition", "position", "offset")
        findings += finding(tables, "unprotected", _SAYS_OFFSETS, wrong, partial(_offset, tables), order=order)
    return Judged(compared=tables.sizes("outputs", "batches", "commits"), findings=findings)


def _output(tables: Tables, row: Any) -> Sample:
    known = {} if row["number"] is None else {"number": row["number"], "header": told(row)}
    return {**place(tables, row), **known}


def _offset(tables: Tables, row: Any) -> Sample:
    return {**position(tables, row), "topic": row["topic"], "producer_id": row["producer_id"]}


CHECK = Check(name="protection", claim=CLAIM, run=_judge, needs=(TRANSACTIONAL, LOG, COORDINATOR_LOG))
