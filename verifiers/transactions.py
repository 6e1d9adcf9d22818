"""Is a transaction open that nobody will ever end?

    hung-transaction    after quiesce a partition has an open transaction (DescribeProducers) that its coordinator
                        does not know: the last stable offset stands still for good (KIP-664, KAFKA-14561)

An open transaction that its coordinator does know is no anomaly but a run that did not come to rest.
"""

from onceproof.harness.record.results import Finding, Reason
from onceproof.verifiers.evidence.check import TRANSACTION_STATE, Check, Judged
from onceproof.verifiers.evidence.findings import explained
from onceproof.verifiers.evidence.tables import Tables

CLAIM = "no partition has an open transaction that its coordinator does not know"
_HUNG = "hung-transaction"


def _judge(tables: Tables) -> Judged:
    still = tables.facts["open_transactions"]
    hung = [each for each in still if each["known_as"] is None]
    reasons = [
        Reason(
            kind="stalled",
            says=f"{each['known_as']} still has a transaction open in {each['topic']}/{each['partition']}",
        )
        for each in still
        if each["known_as"] is not None
    ]
    findings = []
    if hung:
        samples = [{**each, "offset": each["start_offset"]} for each in hung[: tables.samples_max]]
        says = "partitions have an open transaction that its coordinator does not know"
        samples = explained(tables, _HUNG, samples)
        findings = [Finding(cls=_HUNG, count=len(hung), says=says, samples=samples)]
    return Judged(compared=tables.sizes("partitions"), findings=findings, reasons=reasons)


CHECK = Check(name="transactions", claim=CLAIM, run=_judge, needs=(TRANSACTION_STATE,))
