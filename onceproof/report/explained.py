"""What a reader of a finding asks next: what was claimed, what would be right, which fault overlaps, what to try.

`ANOMALIES` has the answers that depend on the class alone. The fault that overlaps a sample follows from the times of
the transactions that the sample names.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onceproof.harness.record.results import Finding, Results
from onceproof.report.timeline import FaultSpan, Name, Transaction, by_name, named_by

_NEAR_S = 2.0  # a fault that has ended so shortly before may still be the cause


@dataclass(frozen=True, kw_only=True)
class Anomaly:
    """What belongs to a class: what would be right, what is known to look like it, and what to try next."""

    right: str
    resembles: str
    try_next: str


@dataclass(frozen=True, kw_only=True)
class Explained:
    """A finding with the claim of its check and its class's answers; `faults` has a text for each sample."""

    finding: Finding
    claim: str
    anomaly: Anomaly | None
    faults: Sequence[str]


ANOMALIES: Mapping[str, Anomaly] = {
    "lost": Anomaly(
        right="Each acknowledged input below the committed offset has its output.",
        resembles="offsets that are committed before or without their outputs; an abort that ends the wrong "
        "transaction (KAFKA-17754)",
        try_next="Follow the input: compare the transaction that committed an offset past it with the transactions "
        "that wrote outputs. Look for automatic offset commits, and for offsets committed outside the transaction.",
    ),
    "duplicate": Anomaly(
        right="An input has as many outputs as the workload says, whatever is repeated.",
        resembles="at-least-once delivery: outputs that are committed apart from their offsets; a transactional id "
        "that changes with each start, so that nothing is fenced (KIP-447)",
        try_next="Compare the transactions of the copies. If they belong to two incarnations, look at how the second "
        "one found its position; if to one, look for a retry without an idempotent producer.",
    ),
    "phantom": Anomaly(
        right="Every output comes from an input.",
        resembles="another application that writes to the output topic; the output of an aborted input",
        try_next="Look at the producer id of its batch, and find the transactional id that has it.",
    ),
    "corrupted": Anomaly(
        right="An output has the content, key and destination that its input gives.",
        resembles="a buffer that is used again before it was sent; two records whose contents were exchanged",
        try_next="Compare the output with the outputs of its transaction, and run without faults: if it is still "
        "there, the computation is at fault and not the recovery.",
    ),
    "reset-skip": Anomaly(
        right="A consumer whose committed offset is gone does not silently go on at a later one.",
        resembles="auto.offset.reset = latest, or earliest after DeleteRecords or retention has moved the log start",
        try_next="Set auto.offset.reset = none and handle the exception, or lengthen the retention.",
    ),
    "reset-reprocess": Anomaly(
        right="A consumer whose committed offset is gone does not process inputs again that it has processed.",
        resembles="auto.offset.reset = earliest after the committed offset expired (offsets.retention.minutes)",
        try_next="Set auto.offset.reset = none, and look at why the committed offset was not found.",
    ),
    "aborted-read": Anomaly(
        right="A read_committed reader sees outputs of committed transactions only.",
        resembles="a marker that arrives late and ends the next transaction (KAFKA-19446, KAFKA-17754); a consumer "
        "that reads uncommitted",
        try_next="Follow the output: look at which marker ended its batch, and compare the epoch of the marker with "
        "that of the batch and with the coordinator's decision. Run with transaction.version = 2 (KIP-890).",
    ),
    "torn-transaction": Anomaly(
        right="All outputs of a transaction are visible, or none is.",
        resembles="a marker that ends another transaction than its own (KAFKA-17754, KAFKA-19446); two transactions "
        "where one was meant",
        try_next="Compare the markers of the transaction's partitions with the decision in __transaction_state.",
    ),
    "reordered": Anomaly(
        right="Outputs of one input partition keep its order within an output partition.",
        resembles="a retry with several requests in flight and without an idempotent producer; a consumer that does "
        "not seek back after an abort",
        try_next="Set enable.idempotence = true, and look for a retry between the two batches.",
    ),
    "offset-divergence": Anomaly(
        right="Committed offsets and visible outputs tell of the same inputs.",
        resembles="offsets that are committed in another transaction than their outputs; a member of an older "
        "generation that commits (KIP-447)",
        try_next="Follow an input next to the offset: compare the transactions of its output and of the commit.",
    ),
    "zombie-write": Anomaly(
        right="Nothing is committed by a producer epoch or group member after its successor.",
        resembles="a transactional id that is not shared by the successor; offsets sent without the group's metadata "
        "(KIP-447)",
        try_next="Give the successor the same transactional id, or pass the consumer's group metadata to "
        "sendOffsetsToTransaction.",
    ),
    "input-lost": Anomaly(
        right="An acknowledged input stays at its offset.",
        resembles="an unclean leader election; acks below all; a log directory that was lost",
        try_next="Look at the in-sync replicas at that time, and at min.insync.replicas and acks.",
    ),
    "inconsistent-read": Anomaly(
        right="Two readers see the same record at an offset.",
        resembles="a log that was truncated after a reader had read beyond the high watermark; an unclean election",
        try_next="Look at the moves of leaders before the later read.",
    ),
    "hung-transaction": Anomaly(
        right="Each open transaction is known to its coordinator, and ends.",
        resembles="a Produce that arrives after its transaction was aborted (KAFKA-14561, KIP-890)",
        try_next="Run with transaction.version = 2, which verifies the partition before the first write. "
        "kafka-transactions.sh --abort ends such a transaction.",
    ),
    "replica-divergence": Anomaly(
        right="All replicas in sync hold the same batches below the high watermark.",
        resembles="a log that was changed on disk; a truncation that one replica missed",
        try_next="Compare the segments of the replicas with `onceproof audit`, and look at the leader epochs.",
    ),
    "unprotected": Anomaly(
        right="Outputs and committed offsets are in one transaction, as the workload claims.",
        resembles="offsets that the consumer commits itself; a producer without a transactional id; a request that "
        "reaches the coordinator after the next transaction has begun (KAFKA-20785)",
        try_next="Call sendOffsetsToTransaction, set enable.auto.commit = false, or declare another claim.",
    ),
    "wrong-aggregate": Anomaly(
        right="Each total is the one before it of its key, plus its own input's amount.",
        resembles="a state store that is not restored to what was committed (KAFKA-20685); a read of the state "
        "before the previous transaction was committed",
        try_next="Follow the input where the total first goes wrong: state and changelog were restored before it.",
    ),
}


def of(results: Results, told: Sequence[Transaction], faults: Sequence[FaultSpan], start: float) -> list[Explained]:
    """Return the findings of a verdict with what explains them; `start` is the start of the run (s) in the history."""
    claims = {finding.cls + finding.says: check.claim for check in results.checks for finding in check.findings}
    transactions = by_name(told)
    return [
        Explained(
            finding=finding,
            claim=claims.get(finding.cls + finding.says, ""),
            anomaly=ANOMALIES.get(finding.cls),
            faults=[_overlapping(sample, transactions, faults, start) for sample in finding.samples],
        )
        for finding in results.findings
    ]


def _overlapping(
    sample: Mapping[str, Any],
    transactions: Mapping[Name, Transaction],
    faults: Sequence[FaultSpan],
    start: float,
) -> str:
    """Return which faults overlap the transactions of a sample, in words; empty if their time is not known."""
    times = list(_times(sample, transactions, start))
    if not times:
        return ""
    begin, end = min(times), max(times)
    at = f"between {begin:.2f} and {end:.2f} s"
    if over := [each.id for each in faults if each.begin <= end and begin <= each.end]:
        return f"{at}, during {', '.join(over)}"
    near = [each for each in faults if 0 <= begin - each.end <= _NEAR_S or 0 <= each.begin - end <= _NEAR_S]
    if near:
        return f"{at}; no fault was active, and {near[0].id} lasted from {near[0].begin:.2f} to {near[0].end:.2f} s"
    return f"{at}; no fault was active"


def _times(sample: Mapping[str, Any], transactions: Mapping[Name, Transaction], start: float) -> Iterator[float]:
    for event in sample.get("transactions") or ():
        yield event["at"] - start
    for name in named_by(sample):
        if (transaction := transactions.get(name)) is not None:
            yield from (transaction.begin, transaction.end)
