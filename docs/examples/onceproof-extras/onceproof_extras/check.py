"""Are the sequence numbers of each producer consecutive?

    sequence-gap    a batch does not begin at the sequence number that follows the batch before it, of the same
                    producer id and epoch in the same partition

    output/3, producer 4001 epoch 2:
      offsets 100..109  sequence 40
      offsets 110..119  sequence 50     consecutive
      offsets 120..129  sequence 70     sequence-gap: 60 was due
      offsets 130..139  sequence 70     sequence-gap: 80 was due, the batch was appended twice

A broker accepts a batch of an idempotent producer only in this order (KIP-98), so a finding is the broker's fault and
not the pipeline's. Control batches have no sequence number and are left out.
"""

from functools import partial
from typing import Any

from onceproof.verifiers.evidence.check import LOG, Check, Judged
from onceproof.verifiers.evidence.findings import Sample, finding, place
from onceproof.verifiers.evidence.tables import Tables

_MODULUS = 2**31  # sequence numbers start again at 0 after 2^31 − 1
_BEFORE = "OVER (PARTITION BY topic, partition, producer_id, producer_epoch ORDER BY first)"


def _judge(tables: Tables) -> Judged:
    batches = tables.log.where("producer_id >= 0 AND control IS NULL")
    due = f"lag((sequence + last - first + 1) % {_MODULUS}L) {_BEFORE} AS due"
    wrong = batches.selectExpr("*", due).where("sequence != due").withColumnRenamed("first", "offset")
    says = "batches do not begin at the sequence number that follows the batch before them"
    findings = finding(tables, "sequence-gap", says, wrong, partial(_sample, tables))
    return Judged(compared={"batches": batches.count()}, findings=findings)


def _sample(tables: Tables, row: Any) -> Sample:
    return {
        **place(tables, row),
        "producer_id": row["producer_id"],
        "producer_epoch": row["producer_epoch"],
        "sequence": row["sequence"],
        "due": row["due"],
    }


CHECK = Check(
    name="sequences",
    claim="in each partition, the sequence numbers of a producer id and epoch are consecutive",
    run=_judge,
    needs=(LOG,),
)
