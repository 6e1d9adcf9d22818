"""Check that no transaction is open that its coordinator will never end.

    hung-transaction    after quiesce a partition has an open transaction (DescribeProducers) that is unknown to its
                        coordinator, so the last stable offset never advances again (KIP-664, KAFKA-14561)

    output/3: producer id 4000 has a transaction open since offset 1200
      no coordinator has an open transaction of producer id 4000 on output/3      hung-transaction
      the coordinator of worker-0's transactional id has it as ongoing            `unknown: stalled`, no anomaly

An open transaction that its coordinator knows means that the run did not come to rest.
"""

from onceproof.harness.record.results import Finding, Reason
from onceproof.verifiers.evidence.check import TRANSACTION_STATE, Check, Judged
from onceproof.verifiers.evidence.findings import explained
from onceproof.verifiers.evidence.tables import Tables

CLAIM = "no partition has an open transaction that is unknown to its coordinator"
_HUNG = "hung-transaction"


def _judge(tables: Tables) -> Judged:
    still = tables.facts["open_transactions"]
    hung = [each for each in still if each["known_as"] is None]
    reasons = [
        Reason(
            kind="stalled",
            says=f"the transaction of {each['known_as']} is still open in {each['topic']}/{each['partition']}",
        )
        for each in still
        if each["known_as"] is not None
    ]
    findings = []
    if hung:
        samples = [{**each, "offset": each["start_offset"]} for each in hung[: tables.samples_max]]
        says = "partitions have an open transaction that is unknown to its coordinator"
        samples = explained(tables, _HUNG, samples)
        findings = [Finding(cls=_HUNG, count=len(hung), says=says, samples=samples)]
    return Judged(compared=tables.sizes("partitions"), findings=findings, reasons=reasons)


CHECK = Check(name="transactions", claim=CLAIM, run=_judge, needs=(TRANSACTION_STATE,))
