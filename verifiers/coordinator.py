"""Check that the partitions' logs hold what the transaction coordinators decided, from the log alone.

    torn-transaction    a marker ends a transaction in a partition although its coordinator decided nothing about it,
                        or something else (KAFKA-19446); or batches before it have an epoch that the decision excludes
    hung-transaction    a decision has no marker in one of its partitions, or a batch belongs to no transaction that any
                        coordinator knows and no marker follows (KAFKA-14561)
    zombie-write        a marker has a lower coordinator epoch than an earlier one of its coordinator; or a committed
                        transaction holds batches of an older epoch than its own (KIP-98)
    lost, duplicate     a producer's sequence numbers in a partition have a gap, or repeat (KIP-98)

    coordinator of worker-0: commit of producer 4000, epoch 7, in output/3
      output/3: [0..9 epoch 6] commit 7                          with transaction version 2 (KIP-890)
      output/3: [0..9 epoch 6] commit 7 [11..15 epoch 7] commit 7 …                torn-transaction: output/3 offset 16
      output/3: [0..9 epoch 6]                                                     hung-transaction: output/3 offset 0

`matching` matches spans and decisions, and `rules` says what is wrong then. What the log cannot show is a late EndTxn
that the coordinator obeys (KAFKA-17754): the log is consistent then.
"""

from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceproof.harness.record.results import Finding, Reason
from onceproof.verifiers import completeness, zombies
from onceproof.verifiers.evidence import decisions, rules, spans, suspects
from onceproof.verifiers.evidence.check import COORDINATOR_LOG, LOG, Check, Judged
from onceproof.verifiers.evidence.findings import explained, finding, place
from onceproof.verifiers.evidence.rules import Sample
from onceproof.verifiers.evidence.tables import PLACE, Tables

CLAIM = "each marker in a partition is that of its coordinator's decision, and each decision has its markers"
# What stands for `known` of `out_of_sequence` in a run: its producers give no batch up but in a transaction that is
# aborted. There a batch may overtake a refused one, and the client then gives its transaction up.
FROM_THE_FIRST = "start = 0 AND fate != 'aborted'"
SEQUENCES = {
    "lost": "batches are missing: the sequence numbers of a producer have a gap",
    "duplicate": "batches were appended twice: the sequence numbers of a producer repeat",
}


def _judge(tables: Tables) -> Judged:
    log, open_at = spans.matched(tables), decisions.ongoing(spans.states(tables))
    told = {(each["topic"], each["partition"]) for each in tables.facts["open_transactions"] or ()}
    found: dict[str, list[Sample]] = {}
    incomplete = {(tables.topic(topic), partition) for topic, partition in completeness.incomplete(tables)}
    for lane in log.lanes:
        topic, _, partition = lane.place.rpartition("/")
        for cls, offset, details in rules.problems(lane, open_at, whole=(topic, int(partition)) not in incomplete):
            if cls == "hung-transaction" and (topic, int(partition)) in told:
                continue  # `transactions` reports it
            found.setdefault(cls, []).append({"topic": topic, "partition": int(partition), "offset": offset, **details})
    for at, offset, details in rules.older_coordinators(log.lanes):
        topic, _, partition = at.rpartition("/")
        sample = {"topic": topic, "partition": int(partition), "offset": offset, **details}
        found.setdefault("zombie-write", []).append(sample)
    findings = [_finding(tables, cls, samples) for cls, samples in sorted(found.items())]
    counted = {"spans": sum(len(lane.spans) for lane in log.lanes), "decisions": log.decisions}
    compared = {**tables.sizes("batches"), **counted}
    return Judged(compared=compared, findings=findings + _sequences(tables), reasons=_unknown(tables, log))


def _finding(tables: Tables, cls: str, samples: list[Sample]) -> Finding:
    samples.sort(key=lambda each: (each["topic"], each["partition"], each["offset"]))
    shown = explained(tables, cls, samples[: tables.samples_max])
    return Finding(cls=cls, count=len(samples), says=rules.SAYS[cls], samples=shown)


def _unknown(tables: Tables, log: spans.Log) -> list[Reason]:
    """Return a reason if spans cannot be matched, because decisions are not known or a lane has too many of both."""
    gone = f"compaction removed {tables.gone_from(rules.COORDINATORS)} records of {rules.COORDINATORS}"
    counts = {gone: sum(lane.unknown for lane in log.lanes), rules.UNALIGNED: sum(lane.unaligned for lane in log.lanes)}
    return [
        Reason(kind="indeterminate", says=f"{count} transactions cannot be judged: {why}")
        for why, count in counts.items()
        if count
    ]


def _sequences(tables: Tables) -> list[Finding]:
    """Return the findings of gaps and repetitions in sequence numbers (rule of KIP-98, of every idempotent producer).

    Outputs that are lost or duplicate already, and partitions that are incomplete, are left out, and so is a batch that
    is a zombie's by its epoch.
    """
    data = tables.log.where("producer_id >= 0 AND control IS NULL").join(
        F.broadcast(completeness.frame(tables)), ["topic", "partition"], "left_anti"
    )
    data = data.join(F.broadcast(tables.starts), ["topic", "partition"]).where("first >= start")
    wrong = tables.unless_empty(out_of_sequence(data.withColumn("known", F.expr(FROM_THE_FIRST))))
    if wrong is None:  # speed
        return []
    late = zombies.by_epoch(tables)
    if late is not None:
        wrong = wrong.join(F.broadcast(late.select(*PLACE)), PLACE, "left_anti")
    suspected = suspects.suspects(tables)
    if suspected is not None:
        if not tables.workload.placed:  # a lost output may have been in any partition
            wrong = wrong.join(F.broadcast(suspected.select("topic").distinct()), "topic", "left_anti")
        mine = ["topic", "number"]
        there = tables.outputs.select(*mine, "partition").unionAll(suspects.expected(tables).select(*mine, "partition"))
        lanes = there.join(suspected.select(*mine), mine, "left_semi").select("topic", "partition").distinct()
        wrong = wrong.join(F.broadcast(lanes), ["topic", "partition"], "left_anti")
    return [
        each
        for cls, says in SEQUENCES.items()
        for each in finding(tables, cls, says, wrong.where(F.col("cls") == cls), partial(_sequence, tables))
    ]


def out_of_sequence(data: DataFrame) -> DataFrame:
    """Return the batches whose sequence number is not the next one of their producer id and epoch in their partition.

    `data` has the batches of idempotent producers in one replica of each partition, without markers, and `known`:
    whether the broker knew the producer, so that the first batch of an epoch must have the number 0. Without that, it
    takes any number. Added columns: offset, expected (null for the first batch), and cls ("lost" for a gap, "duplicate"
    for a repetition). Sequence numbers start again from 0 after 2^31 - 1.
    """
    lane = "OVER (PARTITION BY topic, partition, producer_id, producer_epoch ORDER BY first)"
    next_one = "pmod(sequence + last - first + 1, 2147483648)"
    behind = "pmod(expected - sequence, 2147483648) < 1073741824"
    return (
        data.selectExpr("*", f"lag({next_one}) {lane} AS expected")
        .where("sequence != expected OR expected IS NULL AND sequence != 0 AND known")
        .selectExpr("*", f"IF({behind}, 'duplicate', 'lost') AS cls", "first AS offset")
    )


def _sequence(tables: Tables, row: Any) -> Sample:
    return {**place(tables, row), **of_sequence(row)}


def of_sequence(row: Any) -> Sample:
    """Return what a row of `out_of_sequence` says of the producer and of its sequence numbers."""
    return {
        "producer_id": row["producer_id"],
        "producer_epoch": row["producer_epoch"],
        "sequence": row["sequence"],
        "expected_sequence": row["expected"] or 0,
    }


CHECK = Check(name="coordinator", claim=CLAIM, run=_judge, needs=(LOG, COORDINATOR_LOG))
