"""Check that committed offsets and visible outputs agree, for each transaction and at rest.

    offset-divergence    an output is visible although its input is at or above the group's committed offset;
                         or although the offset of its input was first committed in another transaction;
                         or an offset is committed by a transaction that was given up or has no other effect;
                         or a committed offset is below an earlier one of its partition;
                         or the last committed offset is beyond the end of the log

    committed offset of input/3: 44      the output of input/3 offset 44 is visible: its offset was never committed
    committed offset of input/3: 46      but input/3 ends at 45
    transaction 9: the outputs of inputs 40..49 are visible, but its commit of offset 50 was aborted; transaction 10 has
                         committed 60: nothing is lost, but if the worker had died between the two transactions, inputs
                         40..49 would have been processed again
    offsets committed by one worker, in the order of the log: 50 by transaction 8, 60 by 9, 50 by 10, 70 by 11: if the
                         worker had died after transaction 10, inputs 50..59 would have been processed again

If outputs and offsets are in one transaction, there is no excuse for any of these. A committed offset whose
transaction still has to be ended on its partition is late, not missing: the run has not come to rest. (One cause has
one class: inputs below the committed offset without an output are `lost`, an offset committed by a zombie is a
`zombie-write`, a log that lost its end is `input-lost`.)
"""

from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceproof.harness.record.results import Finding, Reason
from onceproof.verifiers import atomicity, inputs, protection, zombies
from onceproof.verifiers.evidence import causes, fingerprints, intermediate, membership, suspects
from onceproof.verifiers.evidence.cached import cached
from onceproof.verifiers.evidence.check import COMMITTED, COORDINATOR_LOG, LOG, Check, Judged
from onceproof.verifiers.evidence.findings import Sample, explained, finding, place, position
from onceproof.verifiers.evidence.frames import rows
from onceproof.verifiers.evidence.membership import BUCKET
from onceproof.verifiers.evidence.tables import PLACE, TRANSACTION, Tables, over_earlier

CLAIM = "committed offsets and visible outputs cover the same inputs, for each transaction and at rest"
_CLASS = "offset-divergence"
_SAYS = (
    "outputs are visible beyond the offset that their group or transaction committed, or committed offsets belong to "
    "a transaction without visible outputs, go back, or are beyond the end of the log"
)
_OWN = ["source_partition", *TRANSACTION]


def _judge(tables: Tables) -> Judged:
    compared = tables.sizes("commits", "outputs", "transactions")
    reasons = _open(tables)
    beyond, above = explained(tables, _CLASS, _beyond_end(tables)), _above(tables)
    if not tables.gone_from("__consumer_offsets"):
        above += _apart(tables) if tables.workload.sends_positions else []
        above += _without_outputs(tables) + _back(tables) if tables.workload.commits_in_transactions else []
    if not beyond and not above:
        return Judged(compared=compared, reasons=reasons)
    count = len(beyond) + sum(each.count for each in above)
    samples = [*beyond, *(sample for each in above for sample in each.samples)]
    found = Finding(cls=_CLASS, count=count, says=_SAYS, samples=samples[: tables.samples_max])
    return Judged(compared=compared, findings=[found], reasons=reasons)


def _open(tables: Tables) -> list[Reason]:
    """Return a reason if a committed offset waits for the marker of its transaction: it may still be aborted."""
    still = rows(tables.all_commits.where("fate = 'open'").select("log", "offset").orderBy("log", "offset"))
    if not still:
        return []
    first = f"the first at __consumer_offsets/{still[0]['log']} offset {still[0]['offset']}"
    return [Reason(kind="stalled", says=f"{len(still)} committed offsets are in transactions that are open, {first}")]


def _above(tables: Tables) -> list[Finding]:
    """Return the finding of outputs whose inputs are at or above the group's committed offset."""
    suspected = suspects.suspects(tables)
    if suspected is None:
        return []
    wrong = suspected.where("from_o >= coalesce(position, 0)").where(~F.col("from_p").isin(*zombies.moved(tables)))
    due = wrong.select(*causes.KEY, F.col("from_p").alias("p"), F.col("from_o").alias("o"), "position")
    # In a chain another service wrote the output, so an open commit of any transaction may cover the input.
    whose = ["source_partition"] if tables.workload.intermediate_topic else _OWN
    pending = _positions(tables, "fate = 'open'").groupBy(*whose).agg(F.max("position").alias("coming"))
    outputs = causes.standing(tables).join(due, causes.KEY).join(pending, whose, "left")
    outputs = outputs.where("NOT coalesce(source_offset < coming, false)")
    return finding(tables, _CLASS, _SAYS, outputs, partial(_output, tables))


def _apart(tables: Tables) -> list[Finding]:
    """Return the finding of otherwise correct outputs that were written in another transaction than their offset.

    The commit that first moved the committed offset beyond an input must be in the transaction of its outputs. If it
    is in an earlier one, a failure between the two loses the output; in a later one, it duplicates the output.
    """
    found = []
    for stage in membership.stages(tables):
        pieces, setters = stage.pieces, _unexplained(tables, membership.setters(tables, stage.reads))
        strays = protection.strays(tables)
        if strays is not None:
            pieces = pieces.join(strays, [*TRANSACTION, "tx"], "left_anti")
        wrong = _mismatched(tables, pieces, tables.gathered(setters)).select(*_PART)
        if stage.reads != tables.input_topic:  # those of the input are suspects
            wrong = wrong.unionAll(_uncovered(tables, stage).select(*_PART))
        if wrong.isEmpty():  # speed: what follows finds nothing then
            continue
        found += finding(tables, _CLASS, _SAYS, _each(stage.outputs, wrong), partial(_output, tables))
    return found


def _unexplained(tables: Tables, commits: DataFrame) -> DataFrame:
    """Return the commits that no other finding names: theirs are not the transactions that outputs should be in."""
    for found in (protection.offsets(tables), zombies.late_offsets(tables), _alone(tables)):
        if found is not None:
            commits = commits.join(found.select("log", "offset"), ["log", "offset"], "left_anti")
    torn = atomicity.torn(tables)
    return commits if torn is None else commits.join(torn.select(*TRANSACTION).distinct(), TRANSACTION, "left_anti")


def _mismatched(tables: Tables, pieces: DataFrame, setters: DataFrame) -> DataFrame:
    """Return the parts of pieces whose offset was first committed in another transaction.

    Offsets that were committed outside of any transaction, or in one that no decision of a coordinator ended, are
    findings of other checks.
    """
    spread = f"explode(sequence({{}} div {BUCKET}, {{}} div {BUCKET})) AS bucket"
    cut = pieces.selectExpr("*", spread.format("source_first", "source_last"))
    told = setters.selectExpr(
        "source_partition", "before", "position", "tx AS set_by", spread.format("before", "(position - 1)")
    )
    both = cut.join(tables.few(told), ["source_partition", "bucket"]).where(
        "source_first < position AND before <= source_last AND set_by != tx"
    )
    return both.where(f"greatest(source_first, before) div {BUCKET} = bucket").drop("bucket")


_PART = ("topic", "partition", "first", "source_first", "source_last", "before", "position")


def _uncovered(tables: Tables, stage: membership.Stage) -> DataFrame:
    """Return the parts of a stage's pieces whose input is at or above the committed offset of its group."""
    last = "max_by(position, offset) FILTER (WHERE fate = 'visible')"
    coming = "max(position) FILTER (WHERE fate = 'open')"
    reached = tables.all_commits.where(F.col("topic") == stage.reads)
    reached = reached.groupBy(F.col("partition").alias("source_partition")).agg(
        F.expr(f"greatest({last}, {coming}) AS reach")
    )
    both = stage.pieces.join(tables.few(reached), "source_partition", "left")
    return both.where("source_last >= coalesce(reach, 0)").selectExpr(
        "*", "coalesce(reach, 0L) AS before", "source_last + 1 AS position"
    )


def _each(outputs: DataFrame, parts: DataFrame) -> DataFrame:
    """Return the outputs in these parts of pieces, with the place of their input as p and o."""
    first, last = "greatest(source_first, before)", "least(source_last, position - 1)"
    places = parts.selectExpr(
        "topic",
        "partition",
        "position",
        f"explode(sequence({first} + first - source_first, {last} + first - source_first)) AS offset",
    )
    return outputs.withColumnsRenamed({"source_partition": "p", "source_offset": "o"}).join(places, PLACE)


def _positions(tables: Tables, which: str) -> DataFrame:
    """Return offsets that transactions committed, with their partition named as in the outputs: source_partition."""
    return tables.commits.where(which).withColumnRenamed("partition", "source_partition")


def _without_outputs(tables: Tables) -> list[Finding]:
    """Return the finding of offsets that were committed by transactions without visible outputs."""
    wrong = _alone(tables)
    order = ("topic", "partition", "offset")
    return [] if wrong is None else finding(tables, _CLASS, _SAYS, wrong, partial(position, tables), order=order)


@cached
def _alone(tables: Tables) -> DataFrame | None:
    """Return offsets that were committed by transactions without visible outputs; None if there are none.

    The manifest of these transactions, of every service of a chain, lists records of which none is visible; or they
    were given up, and no header names them. Where inputs of theirs have no output at the end, those inputs are `lost`,
    and there is no finding here.
    """
    had = atomicity.told_parts(tables).select(*TRANSACTION)
    without = had.join(tables.few(atomicity.seen(tables)), TRANSACTION, "left_anti")
    headers = fingerprints.output_ranges(tables).select(*TRANSACTION)
    given_up = atomicity.given_up(tables).join(tables.few(headers.distinct()), TRANSACTION, "left_anti")
    visible = tables.all_commits.where("fate = 'visible'")
    wrong = visible.join(tables.few(without.unionAll(given_up)), TRANSACTION, "left_semi")
    wrong, suspected = _but_zombies(tables, wrong), suspects.suspects(tables)
    if suspected is not None:
        mine = ["topic", "partition", *TRANSACTION]
        spans = (
            tables.transactions.join(wrong.select(*mine, F.col("position").alias("reach")), TRANSACTION)
            .groupBy(*mine, "reach")
            .agg(F.max(F.expr("sources[cast(partition AS string)]")).alias("span"))
        )
        # A worker that was killed before it called commit left no source ranges: it read up to its committed offset.
        reached = "from_o >= coalesce(span[0], 0) AND from_o < coalesce(span[1], reach)"
        inside = F.expr(f"from = topic AND from_p = partition AND {reached}")
        missing = intermediate.read_of(tables, suspected.where("missing"))
        wrong = wrong.join(spans.join(missing, inside).select(*mine), mine, "left_anti")
    return tables.unless_empty(wrong)


def _back(tables: Tables) -> list[Finding]:
    """Return the finding of committed offsets that are below an earlier one of their partition, of every group.

    If the workers had died at that moment, the inputs between the two offsets would have been processed again. What a
    transaction did again is a finding itself, and so are the outputs of one whose inputs are above the last offset.
    """
    earlier = over_earlier(("topic", "partition"), "offset")
    told = _unexplained(tables, tables.all_commits.where("fate = 'visible'"))
    wrong = told.selectExpr("*", f"max(position) {earlier} AS high").where("position < high")
    suspected = suspects.suspects(tables)
    if suspected is not None:
        again = tables.outputs.join(suspected.select(*causes.KEY), causes.KEY, "left_semi")
        wrong = wrong.join(again.select(*TRANSACTION).distinct(), TRANSACTION, "left_anti")
    return finding(tables, _CLASS, _SAYS, wrong, partial(position, tables), order=("topic", "partition", "offset"))


def _but_zombies(tables: Tables, wrong: DataFrame) -> DataFrame:
    """Return the committed offsets in `wrong` that no zombie committed."""
    late = zombies.late_offsets(tables)
    return wrong if late is None else wrong.join(late, ["log", "offset"], "left_anti")


def _output(tables: Tables, row: Any) -> Sample:
    return {
        **place(tables, row),
        "number": row["number"],
        "position": row["position"],
        "input": {"partition": row["p"], "offset": row["o"]},
    }


def _beyond_end(tables: Tables) -> list[Sample]:
    """Return the partitions whose committed offset is beyond the end of the log, unless the log lost its end."""
    ends = {(each["topic"], each["partition"]): each["high_watermark"] for each in tables.pinned}
    lost = inputs.lost(tables)
    partitions = [] if lost is None else rows(lost.select("partition").distinct())
    short = {(tables.input_topic, row["partition"]) for row in partitions}
    committed = sorted((each["topic"], each["partition"], each["offset"]) for each in tables.facts["positions"])
    return [
        {"topic": topic, "partition": partition, "offset": ends[topic, partition], "position": position}
        for topic, partition, position in committed
        if position > ends[topic, partition] and (topic, partition) not in short
    ]


CHECK = Check(name="offsets", claim=CLAIM, run=_judge, needs=(LOG, COORDINATOR_LOG, COMMITTED))
