"""Does every input have exactly the outputs that it should?

    lost           an acknowledged input, below the committed position, has no output
    duplicate      an input has more outputs than it should
    phantom        an output has no input
    corrupted      an output differs from what its input gives, or its headers from its payload
    reset-skip     lost, but between the stable position at a delete-records and the low watermark it returned
    reset-reprocess  duplicate, in a partition whose records were deleted, between low watermark and position

Which input an output comes from is the payload's word (its number); header, key and destination must agree. One pass
counts expected and actual outputs for each number; whatever does not fit at once is a suspect, and only suspects are
looked at one by one.

One cause, one class. An output whose payload is broken is `corrupted`; the input that its header names is then not
lost as well:

    input 41 → output "0000000000x1 …" with header 3,41     corrupted (not: phantom, and 41 lost)
    input 41 → two outputs                                  duplicate
    input 41 → one output, header 3,40                      corrupted
    a record of which nobody knows the number or the header phantom
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.verdict import SAMPLES_MAX, CheckResult, Finding, Reason
from verifiers import accounts, completeness
from verifiers.accounts import KEY
from verifiers.samples import batches_around
from verifiers.spark import rows
from verifiers.tables import Span, Tables

CLAIM = "every input below the committed position has exactly the outputs that it should, and no other output exists"


def check(tables: Tables) -> CheckResult:
    suspects = accounts.suspects(tables)
    if suspects is None:
        return CheckResult(name="exactly-once", claim=CLAIM)
    return _judge(tables, accounts.expected(tables), suspects)


def _judge(tables: Tables, expected: DataFrame, suspects: DataFrame) -> CheckResult:
    same = [F.col(f"s.{key}").eqNullSafe(F.col(f"r.{key}")) for key in KEY]
    due = expected.alias("r").join(suspects.alias("s"), reduce(Column.__and__, same), "left_semi")
    there = tables.outputs.alias("r").join(suspects.alias("s"), reduce(Column.__and__, same), "left_semi")
    due_by_number = due.groupBy(*KEY).agg(
        F.count("*").alias("due"), F.sum("input.least").alias("least"), F.max("digest").alias("due_digest"),
        F.max("partition").alias("due_partition"), F.max("input").alias("input"),
    )  # fmt: skip
    found = there.join(due_by_number, KEY, "left").withColumn(
        "intact", F.coalesce(F.col("digest") == F.col("due_digest"), F.lit(False))
    ).persist()  # fmt: skip
    intact = found.where("intact").groupBy(*KEY).agg(F.count("*").alias("intact_count"))

    missing = due_by_number.join(intact, KEY, "left").where("coalesce(intact_count, 0) < least")
    broken = found.where("NOT intact")
    claimed = broken.select("topic", F.col("source_partition").alias("p"), F.col("source_offset").alias("o")).distinct()
    of_missing = [F.col("m.topic") == F.col("c.topic"), F.col("m.input.partition") == F.col("c.p"),
                  F.col("m.input.offset") == F.col("c.o")]  # fmt: skip
    explained = reduce(Column.__and__, of_missing)
    unexplained = missing.alias("m").join(claimed.alias("c"), explained, "left_anti").persist()

    known = F.col("due_digest").isNotNull()
    claims_missing = broken.alias("c").join(
        missing.select("topic", F.col("input.partition").alias("source_partition"),
                       F.col("input.offset").alias("source_offset")).distinct().withColumn("claims", F.lit(True)),
        ["topic", "source_partition", "source_offset"], "left",
    )  # fmt: skip
    phantoms = claims_missing.where(~known & F.col("claims").isNull())
    garbled = claims_missing.where(known | F.col("claims").isNotNull())
    extra = found.where("intact").join(intact, KEY).where("intact_count > due")
    forged = found.where("intact").join(intact, KEY).where("intact_count <= due").where(
        ~F.col("partition").eqNullSafe(F.col("due_partition"))
        | ~F.col("source_partition").eqNullSafe(F.col("input.partition"))
        | (F.col("input.offset").isNotNull() & ~F.col("source_offset").eqNullSafe(F.col("input.offset")))
    )  # fmt: skip
    return _result(tables, unexplained, extra, phantoms, garbled.drop("claims").unionByName(
        forged.drop("intact_count"), allowMissingColumns=True))  # fmt: skip


def _result(
    tables: Tables, missing: DataFrame, extra: DataFrame, phantoms: DataFrame, corrupted: DataFrame
) -> CheckResult:
    reasons: list[Reason] = []
    findings: list[Finding] = []
    gone = missing.select("topic", "number", F.col("input.partition").alias("partition"),
                          F.col("input.offset").alias("offset"))  # fmt: skip
    skipped, reprocessed = _spans(tables)
    below = accounts.below_position(tables, "partition", "offset")
    waiting = gone.where(~below).count()
    if waiting:
        reasons.append(Reason(kind="stalled", says=f"{waiting} inputs above the committed position have no output"))
    if completeness.incomplete(tables):
        absent = gone.where(below).count()
        if absent:
            says = f"{absent} inputs without output, but a partition is incomplete: not asserted"
            reasons.append(Reason(kind="indeterminate", says=says))
    else:
        findings += _absence(tables, "lost", "inputs have no output", gone.where(below & ~_within(skipped)))
        says = "inputs were skipped because the log start passed the committed position"
        findings += _absence(tables, "reset-skip", says, gone.where(below & _within(skipped)))
    again = _within(reprocessed, "input.partition", "input.offset")
    says = "outputs of inputs that have more outputs than they should"
    findings += _presence(tables, "duplicate", says, extra.where(~again))
    says = "outputs of inputs that were processed again after the log start moved"
    findings += _presence(tables, "reset-reprocess", says, extra.where(again))
    findings += _presence(tables, "phantom", "outputs have no input", phantoms)
    says = "outputs differ from what their input gives, or their headers from their payload"
    findings += _presence(tables, "corrupted", says, corrupted)
    return CheckResult(name="exactly-once", claim=CLAIM, findings=findings, reasons=reasons)


def _spans(tables: Tables) -> tuple[list[Span], list[Span]]:
    """What the deletes may explain: inputs skipped (past the position), inputs processed again (behind it)."""
    skipped = [
        Span(partition=mark["partition"], first=mark["position"], after=mark["low_watermark"])
        for mark in tables.deletes if mark["low_watermark"] > mark["position"]
    ]  # fmt: skip
    moved = {e["partition"] for e in tables.events if e["event"] == "position-reset" and e["found"] < e["expected"]}
    again = [
        Span(partition=mark["partition"], first=mark["low_watermark"], after=mark["position"])
        for mark in tables.deletes if mark["low_watermark"] < mark["position"] and mark["partition"] in moved
    ]  # fmt: skip
    return skipped, again


def _within(spans: Sequence[Span], partition: str = "partition", offset: str = "offset") -> Column:
    terms = [
        (F.col(partition) == span.partition) & (F.col(offset) >= span.first) & (F.col(offset) < span.after)
        for span in spans
    ]
    return reduce(Column.__or__, terms, F.lit(False))


def _absence(tables: Tables, cls: str, says: str, frame: DataFrame) -> list[Finding]:
    """A finding whose samples are inputs."""
    count = frame.count()
    if not count:
        return []
    samples = []
    for row in rows(frame.orderBy("partition", "offset").limit(SAMPLES_MAX)):
        place = {"topic": tables.input_topic, "partition": row["partition"], "offset": row["offset"]}
        samples.append({**place, "number": row["number"], "missing_from": tables.topic(row["topic"]),
                        "transactions": tables.around(row["partition"], row["offset"])})  # fmt: skip
    return [Finding(cls=cls, count=count, says=says, samples=batches_around(tables, samples))]


def _presence(tables: Tables, cls: str, says: str, frame: DataFrame) -> list[Finding]:
    """A finding whose samples are outputs."""
    count = frame.count()
    if not count:
        return []
    samples: list[dict[str, Any]] = []
    for row in rows(frame.orderBy("number", "topic", "partition", "offset").limit(SAMPLES_MAX)):
        source = row["input"]
        told = {name: row[name] for name in ("source_partition", "source_offset", "worker", "incarnation",
                                             "transaction")}  # fmt: skip
        samples.append({
            "topic": tables.topic(row["topic"]), "partition": row["partition"], "offset": row["offset"],
            "number": row["number"], "header": told,
            "input": None if source is None else {"partition": source["partition"], "offset": source["offset"]},
            "transactions": [] if source is None or source["offset"] is None
            else tables.around(source["partition"], source["offset"]),
        })  # fmt: skip
    return [Finding(cls=cls, count=count, says=says, samples=batches_around(tables, samples))]


CHECKS = (check,)
