"""Check that every input has exactly the outputs that it should have.

    lost             an acknowledged input below the committed offset has no output
    duplicate        an input has more outputs than it should have
    phantom          an output belongs to no input
    corrupted        an output differs from what its input gives, or its header contradicts its payload
    reset-skip       as lost, for an input between the committed offset at a delete-records and the low watermark that
                     the brokers returned
    reset-reprocess  as duplicate, for an input between that low watermark and the committed offset, in a partition in
                     which a consumer was reset to an earlier offset

The number in an output's payload identifies its input; header, key and partition must agree with it. Outputs that do
not fit their input in every respect are suspects (`suspects`), and this check examines only the suspects.

One cause has one class. An output whose payload is broken is `corrupted`, and the input that its header names is not
reported as `lost` as well:

    input 41 → output "0000000000x1 …" with header 3,41     corrupted (not phantom, and 41 is not lost)
    input 41 → two outputs                                  duplicate
    input 41 → one output, header 3,40                      corrupted
    an output with an unknown number, whose header names no
    input that lacks an output                              phantom

A finding by presence (`duplicate`, `phantom`, `corrupted`) is always reported. A finding by absence (`lost`,
`reset-skip`) is reported only if the partitions of the input and of the output are complete. An input that the ledger
calls `info` may have its outputs or none if it is not in the log; if it has some of them and not all, that is a reason
(`unknown`). If it is in the log, it is an input like any other.
An acknowledged input must have its output even if its offset was not returned and it is no longer in the log. If that
output is missing, the run is `unknown`, since it cannot be decided whether the input is below the committed offset.

Ledger mode does not read the input topic. If an output names an offset there that the ledger does not have, it may come
from a further copy of an input, or from a record of another producer, so it is a reason (`unknown`) and no finding:

    ledger: number 41 at offset 40        outputs of 41 that name offsets 40 and 90     unknown
                                          two outputs of 41 that name offset 90         duplicate
"""

from functools import partial, reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from onceproof.harness.record.events import PositionReset
from onceproof.harness.record.results import Finding, Reason, ReasonKind
from onceproof.verifiers import completeness, inputs
from onceproof.verifiers.evidence import causes, partly, suspects
from onceproof.verifiers.evidence.causes import KEY
from onceproof.verifiers.evidence.check import IDENTITY, LOG, Check, Judged
from onceproof.verifiers.evidence.findings import Sample, finding, place, told
from onceproof.verifiers.evidence.frames import rows
from onceproof.verifiers.evidence.tables import Tables

CLAIM = "every input below the committed offset has exactly the outputs that it should have, and no other output exists"
_SAYS = {
    "lost": "inputs below the committed offset lack an output that they should have",
    "reset-skip": "inputs were skipped because the log start moved beyond the committed offset",
    "duplicate": "outputs belong to inputs that have more outputs than they should have",
    "reset-reprocess": "outputs belong to inputs that were processed again after records had been deleted and a "
    "consumer had been reset to an earlier offset",
    "phantom": "outputs belong to no input of the run",
    "corrupted": "outputs differ from what their input gives, are in the wrong partition, or have a header that "
    "contradicts their payload",
}
_UNSURE: tuple[tuple[str, ReasonKind, str], ...] = (
    ("waiting", "stalled", "at or above the committed offset have no output"),
    ("unsure", "indeterminate", "have no output, but a partition is incomplete or the input's offset is not known"),
)
_UNREAD = "outputs name offsets of the input topic that the ledger does not have, and ledger mode did not read it"
_PAYLOAD = [*KEY, "digest"]
_NAMED = [*_PAYLOAD, "source_partition", "source_offset"]
_NAMES_IT = "exists(inputs, i -> source_partition <=> i.partition AND (i.offset IS NULL OR source_offset <=> i.offset))"
_BY_ABSENCE = ("lost", "reset-skip")


def _judge(tables: Tables) -> Judged:
    compared, suspected = tables.sizes("inputs", "outputs"), suspects.suspects(tables)
    reasons = partly.reasons(tables)
    if suspected is None:
        return Judged(compared=compared, reasons=reasons)
    due = tables.gathered(_due(tables, suspected))
    there = tables.gathered(_there(tables, suspected, due))
    missing = tables.gathered(_missing(due, there))
    absent, present = _absent(tables, missing, there), _present(tables, missing, there)
    found = tables.gathered(absent.unionByName(present, allowMissingColumns=True))
    counts = {row["cls"]: row["n"] for row in rows(found.groupBy("cls").agg(F.count("*").alias("n")))}
    reasons += [
        Reason(kind=reason, says=f"{counts[cls]} inputs {_worded(tables, says)}")
        for cls, reason, says in _UNSURE
        if cls in counts
    ]
    if "unread" in counts:
        reasons.append(Reason(kind="indeterminate", says=f"{counts['unread']} {_UNREAD}"))
    findings: list[Finding] = []
    for cls, says in _SAYS.items():
        sample = partial(_input if cls in _BY_ABSENCE else _output, tables)
        findings += finding(
            tables,
            cls,
            _worded(tables, says),
            found.where(F.col("cls") == cls),
            sample,
            order=("input.partition", "input.offset", "topic", "partition", "offset"),
            count=counts.get(cls, 0),
        )
    return Judged(compared=compared, findings=findings, reasons=reasons)


def _worded(tables: Tables, says: str) -> str:
    """Return a text for an application that commits no offsets, if it is about one: its outputs take their place."""
    if tables.workload.claim.position != "none":
        return says
    return says.replace("below the committed offset", "before others of their partition that have an output").replace(
        "at or above the committed offset", "behind all of their partition that have an output"
    )


def _due(tables: Tables, suspected: DataFrame) -> DataFrame:
    """Return the suspects' expected outputs, one row for each topic, number and digest.

    `due` is how many such outputs there may be, `least` how many there must be; `due_at` and `least_at` say so for each
    partition.
    """
    mine = suspects.expected(tables).join(suspected.select(*KEY), KEY, "left_semi")
    at = mine.groupBy(*_PAYLOAD, "partition").agg(
        F.count("*").alias("due"),
        F.sum("input.least").alias("least"),
        F.max("input").alias("input"),
        F.collect_set(F.struct("input.partition", "input.offset")).alias("inputs"),
    )
    return at.groupBy(*_PAYLOAD).agg(
        F.sum("due").alias("due"),
        F.sum("least").alias("least"),
        _by_partition("due"),
        _by_partition("least"),
        F.max("input").alias("input"),
        F.flatten(F.collect_list("inputs")).alias("inputs"),
    )


def _by_partition(count: str) -> Column:
    """Return the aggregate that maps each partition to its count."""
    return F.map_from_entries(F.collect_list(F.struct("partition", count))).alias(f"{count}_at")


def _there(tables: Tables, suspected: DataFrame, due: DataFrame) -> DataFrame:
    """Return the suspects' actual outputs, each with what is due for its number.

    `intact` says whether the output's payload is one that is due, `unread` whether its header names an input that
    nobody knows (`inputs.named_unread`).
    """
    same = F.expr("o.topic = s.topic AND o.number <=> s.number")
    there = causes.standing(tables).alias("o").join(suspected.alias("s"), same, "left_semi")
    of_number = due.groupBy(*KEY).agg(F.max("input").alias("of_number"))
    looked = (
        there.join(due, _PAYLOAD, "left")
        .withColumn("intact", F.expr("due IS NOT NULL"))
        .join(of_number, KEY, "left")
        .withColumn("input", F.coalesce("input", "of_number"))
    )
    return inputs.named_unread(tables, looked.withColumn("lane", F.expr(tables.lane)))


def _intact(there: DataFrame) -> DataFrame:
    """Return the number of intact outputs for each topic, number and digest.

    `intact` counts all of them, `unread` those that name an input nobody knows; `intact_at` counts by partition.
    """
    at = there.where("intact").groupBy(*_PAYLOAD, F.col("lane").alias("partition"))
    counted = at.agg(F.count("*").alias("intact"), F.expr("count_if(unread) AS unread"))
    sums = F.sum("intact").alias("intact_count"), F.sum("unread").alias("intact_unread")
    return counted.groupBy(*_PAYLOAD).agg(*sums, _by_partition("intact"))


def _of_place(there: DataFrame) -> DataFrame:
    """Return how many equal outputs name the same input: `of_place`."""
    return there.groupBy(*_NAMED).agg(F.count("*").alias("of_place"))


def _missing(due: DataFrame, there: DataFrame) -> DataFrame:
    """Return expected outputs of which fewer are intact than there must be, one row for each input and topic.

    `short` is the partitions that have fewer.
    """
    few = due.join(_intact(there), _PAYLOAD, "left").where("coalesce(intact_count, 0) < least")
    short = F.expr("filter(map_keys(least_at), p -> coalesce(intact_at[p], 0) < least_at[p]) AS short")
    return few.select("*", short).dropDuplicates([*KEY, "input"])


def _absent(tables: Tables, missing: DataFrame, there: DataFrame) -> DataFrame:
    """Return the findings by absence: cls, topic, number, input."""
    missing = causes.without_excused(tables, missing)
    broken = there.where("NOT intact")
    claimed = broken.select("topic", F.col("source_partition").alias("p"), F.col("source_offset").alias("o")).distinct()
    of_missing = F.expr("m.topic = c.topic AND m.input.partition = c.p AND m.input.offset = c.o")
    missing = missing.alias("m").join(claimed.alias("c"), of_missing, "left_anti")
    holes = completeness.frame(tables)
    to = holes.groupBy("topic").agg(F.collect_set("partition").alias("holes"))
    source = holes.where("topic = 'input'").selectExpr("partition AS from_partition", "hole AS from_hole")
    placed = (
        missing.join(
            F.broadcast(tables.positions_frame.withColumnRenamed("partition", "p")),
            F.col("input.partition") == F.col("p"),
            "left",
        )
        .join(F.broadcast(to), "topic", "left")
        .join(F.broadcast(source), F.expr("input.partition = from_partition"), "left")
    )
    overlap = "arrays_overlap(short, holes)" if tables.workload.placed else "holes IS NOT NULL"
    cls = (
        F.when(F.expr("input.offset IS NULL"), "unsure")
        .when(F.expr("NOT coalesce(input.offset < position, false)"), "waiting")
        .when(F.expr(f"{overlap} OR from_hole"), "unsure")
        .when(_within(_skipped(tables)), "reset-skip")
        .otherwise("lost")
    )
    return placed.select(cls.alias("cls"), *KEY, "input")


def _present(tables: Tables, missing: DataFrame, there: DataFrame) -> DataFrame:
    """Return the findings by presence: cls, the output's row, and the input that it belongs to."""
    of_missing = missing.select(
        "topic",
        F.col("input.partition").alias("source_partition"),
        F.col("input.offset").alias("source_offset"),
        F.lit(True).alias("of_missing"),
    ).distinct()
    claims = ["topic", "source_partition", "source_offset"]
    looked = there.join(_intact(there), _PAYLOAD, "left").join(_of_place(there), _NAMED, "left")
    looked = looked.join(of_missing, claims, "left")
    too_many = F.when(_within(_reprocessed(tables)), "reset-reprocess").otherwise("duplicate")
    cls = (
        F.when(
            F.expr("of_number IS NULL AND of_missing IS NULL"), F.when(F.expr("unread"), "unread").otherwise("phantom")
        )
        .when(F.expr("NOT intact AND unread AND input.offset IS NOT NULL"), "unread")
        .when(F.expr("NOT intact"), "corrupted")
        .when(F.expr("(CASE WHEN unread THEN of_place ELSE intact_count - intact_unread END) > due"), too_many)
        .when(F.expr("unread AND intact_count > due"), "unread")
        .when(F.expr(f"unread AND NOT ({_NAMES_IT})"), "unread")
        .when(
            F.expr(
                f"due_at[lane] IS NULL OR intact_count <= due AND intact_at[lane] > due_at[lane] OR NOT {_NAMES_IT}"
            ),
            "corrupted",
        )
    )
    columns = [*KEY, "partition", "offset", "source_partition", "source_offset", "worker", "incarnation", "transaction"]
    judged = looked.select(cls.alias("cls"), *columns, "input")
    return judged.where("cls IS NOT NULL")  # speed: if inputs have two outputs on one topic, every output is a suspect


def _skipped(tables: Tables) -> list[tuple[int, int, int]]:
    """Return the inputs that a delete beyond the committed offset may have removed before they were read.

    Each is an input partition, the first offset, and the offset after the last. The range is empty if the latter is
    not the higher one. A consumer may have read beyond the committed offset before the delete, so the range begins
    after the last input in it that has an output: one that is missing before it was read, and is lost.
    """
    skipped = []
    for mark in tables.deletes:
        first = mark.position
        if first < mark.low_watermark:  # speed: no input is in an empty range
            there = F.col("source_offset").between(first, mark.low_watermark - 1)
            read = tables.outputs.where(there & (F.col("source_partition") == mark.partition))
            [last] = rows(read.agg(F.max("source_offset").alias("last")))
            first = first if last["last"] is None else last["last"] + 1
        skipped.append((mark.partition, first, mark.low_watermark))
    return skipped


def _reprocessed(tables: Tables) -> list[tuple[int, int, int]]:
    """Return the inputs that may have been read again after a delete, in partitions in which a consumer went back."""
    found: dict[int, int] = {}
    for each in tables.events.of(PositionReset):
        if each.found < each.expected and tables.reads_input(each):
            found[each.partition] = min(each.found, found.get(each.partition, each.found))
    return [
        (mark.partition, max(mark.low_watermark, found[mark.partition]), mark.position)
        for mark in tables.deletes
        if mark.partition in found
    ]


def _within(spans: list[tuple[int, int, int]]) -> Column:
    """Return whether a row's input is in one of these ranges."""
    terms = [
        F.expr(f"input.partition = {partition} AND input.offset >= {first} AND input.offset < {after}")
        for partition, first, after in spans
    ]
    return reduce(Column.__or__, terms, F.lit(False))


def _input(tables: Tables, row: Any) -> Sample:
    """Return the sample of a finding by absence, at the place of the input."""
    return {
        "topic": tables.input_topic,
        "partition": row["input"]["partition"],
        "offset": row["input"]["offset"],
        "number": row["number"],
        "missing_from": tables.topic(row["topic"]),
    }


def _output(tables: Tables, row: Any) -> Sample:
    """Return the sample of a finding by presence, at the place of the output."""
    source = row["input"]
    return {
        **place(tables, row),
        "number": row["number"],
        "header": told(row),
        "input": None if source is None else {"partition": source["partition"], "offset": source["offset"]},
    }


CHECK = Check(name="exactly-once", claim=CLAIM, run=_judge, needs=(LOG, IDENTITY))
