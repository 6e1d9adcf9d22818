"""Do the committed positions and the visible outputs tell the same story?

    offset-divergence    an output is visible whose input lies at or above the group's committed position, or whose own
                         transaction committed no position behind its input; or a position is committed whose
                         transaction was given up, or has no other effect; or it goes back to that of an earlier
                         transaction; or the last position lies beyond the end of the log

    position of input/3: 44      output of input/3 offset 44 is visible: its position was never committed
    position of input/3: 46      but input/3 ends at 45
    transaction 9: inputs 40..49 visible, its position 50 aborted; transaction 10 has committed 60: nothing is lost, but
                         had the worker died between the two, 40..49 would have been done again
    positions in the log, of one worker: transaction 8's 50, 9's 60, 8's 50 again, 10's 70: a request of 8 came late

With position and outputs in one transaction there is no excuse for any of it. A position whose transaction still has to
be ended on its partition is not missing, but late: the run has not come to rest. (Inputs below the position without
output are `lost`; a position that a zombie committed is a `zombie-write`; a log that lost its end is `input-lost`: one
cause, one class.)
"""

from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceproof.harness.record.results import Finding
from onceproof.verifiers import atomicity, inputs, zombies
from onceproof.verifiers.evidence import causes, fingerprints, suspects
from onceproof.verifiers.evidence.check import LOG, Check, Judged
from onceproof.verifiers.evidence.findings import Sample, explained, finding, place, position
from onceproof.verifiers.evidence.spark import rows
from onceproof.verifiers.evidence.tables import TRANSACTION, Tables, over_earlier

CLAIM = "outputs and positions tell of the same inputs, transaction by transaction and at rest"
_SAYS = "outputs above their group's or transaction's position; positions of what came to nothing, gone back or too far"
_OWN = ["source_partition", *TRANSACTION]


def _judge(tables: Tables) -> Judged:
    compared = tables.sizes("commits", "outputs", "transactions")
    beyond, above = explained(tables, "offset-divergence", _beyond_end(tables)), _above(tables)
    if not tables.facts["compacted"]:
        above += _apart(tables) if tables.workload.one_transaction else []
        above += _without_outputs(tables) + _back(tables) if tables.workload.sends_positions else []
    if not beyond and not above:
        return Judged(compared=compared)
    count = len(beyond) + sum(each.count for each in above)
    samples = [*beyond, *(sample for each in above for sample in each.samples)]
    found = Finding(cls="offset-divergence", count=count, says=_SAYS, samples=samples[: tables.samples_max])
    return Judged(compared=compared, findings=[found])


def _above(tables: Tables) -> list[Finding]:
    """Outputs whose inputs lie at or above the group's position."""
    suspected = suspects.suspects(tables)
    if suspected is None:
        return []
    wrong = suspected.where("from_o >= coalesce(position, 0)").where(~F.col("from_p").isin(*zombies.moved(tables)))
    due = wrong.select(*causes.KEY, F.col("from_p").alias("p"), F.col("from_o").alias("o"), "position")
    # In a chain the output is another service's: whoever's position is on its way to where the input was.
    whose = ["source_partition"] if tables.workload.intermediate_topic else _OWN
    pending = _positions(tables, "fate = 'open'").groupBy(*whose).agg(F.max("position").alias("coming"))
    outputs = causes.standing(tables).join(due, causes.KEY).join(pending, whose, "left")
    outputs = outputs.where("NOT coalesce(source_offset < coming, false)")
    return finding(tables, "offset-divergence", _SAYS, outputs, partial(_output, tables))


def _apart(tables: Tables) -> list[Finding]:
    """Outputs of which all else is right, and whose own transaction committed no position behind their inputs."""
    wrong = _behind(tables, suspects.contiguous_ranges(tables), "source_last")
    if wrong.isEmpty():  # speed: what follows finds nothing then
        return []
    outputs = _behind(tables, suspects.fitting(tables), "source_offset")
    named = outputs.withColumnsRenamed({"source_partition": "p", "source_offset": "o"})
    return finding(tables, "offset-divergence", _SAYS, named, partial(_output, tables))


def _behind(tables: Tables, outputs: DataFrame, source: str) -> DataFrame:
    """Of outputs, or contiguous ranges of them, those whose transaction committed no position behind their
    `source` offset."""
    told = _positions(tables, "fate IN ('visible', 'open')")
    last = told.groupBy(*_OWN).agg(F.expr("max(position) AS position"))
    return outputs.join(tables.few(last), _OWN, "left").where(f"NOT coalesce({source} < position, false)")


def _positions(tables: Tables, which: str) -> DataFrame:
    """Positions that transactions sent, by the partition that their outputs name."""
    return tables.commits.where(which).withColumnRenamed("partition", "source_partition")


def _without_outputs(tables: Tables) -> list[Finding]:
    """Committed positions of transactions of which nothing else is visible, though they were given up, or their
    manifest tells of outputs. Where inputs of theirs have no output, these are `lost`."""
    judged = F.col("topic").isin(*tables.workload.judged)
    had = atomicity.told_parts(tables).where(judged).select(*TRANSACTION)
    visible = tables.commits.where("fate = 'visible'")
    seen = fingerprints.output_ranges(tables).select(*TRANSACTION).distinct()
    wrong = visible.join(tables.few(seen), TRANSACTION, "left_anti")
    wrong = wrong.join(tables.few(atomicity.given_up(tables).unionAll(had)), TRANSACTION, "left_semi")
    wrong, suspected = _but_zombies(tables, wrong), suspects.suspects(tables)
    if suspected is not None:
        mine = ["partition", *TRANSACTION]
        spans = (
            tables.transactions.join(wrong.select(*mine, F.col("position").alias("reach")), TRANSACTION)
            .groupBy(*mine, "reach")
            .agg(F.max(F.expr("sources[cast(partition AS string)]")).alias("span"))
        )
        # Who was killed before it called commit did not say what it had read: up to its position, at most.
        inside = F.expr("from_p = partition AND from_o >= coalesce(span[0], 0) AND from_o < coalesce(span[1], reach)")
        wrong = wrong.join(spans.join(suspected, inside).select(*mine), mine, "left_anti")
    return finding(tables, "offset-divergence", _SAYS, wrong, partial(position, tables), order=("partition", "offset"))


def _back(tables: Tables) -> list[Finding]:
    """Committed positions of a transaction behind those of a later one of the same worker, and lower: had the worker
    died then, what lies between would have been done again."""
    earlier = over_earlier(("partition", *TRANSACTION[:2]), "offset")
    told = tables.commits.where("fate = 'visible'")
    wrong = told.selectExpr("*", f"max(transaction) {earlier} AS latest", f"max(position) {earlier} AS high").where(
        "transaction < latest AND position < high"
    )
    wrong = _but_zombies(tables, wrong)
    return finding(tables, "offset-divergence", _SAYS, wrong, partial(position, tables), order=("partition", "offset"))


def _but_zombies(tables: Tables, wrong: DataFrame) -> DataFrame:
    """Of committed positions, those that no zombie committed."""
    late = zombies.by_group(tables)
    return wrong if late is None else wrong.join(late, ["partition", "offset"], "left_anti")


def _output(tables: Tables, row: Any) -> Sample:
    return {
        **place(tables, row),
        "number": row["number"],
        "position": row["position"],
        "input": {"partition": row["p"], "offset": row["o"]},
    }


def _beyond_end(tables: Tables) -> list[Sample]:
    ends = tables.input_ends
    lost = inputs.lost(tables)
    short = set() if lost is None else {row["partition"] for row in rows(lost.select("partition").distinct())}
    return [
        {"topic": tables.input_topic, "partition": partition, "offset": ends[partition], "position": position}
        for partition, position in sorted(tables.positions.items())
        if position > ends[partition] and partition not in short
    ]


CHECK = Check(name="offsets", claim=CLAIM, run=_judge, needs=(LOG,))
