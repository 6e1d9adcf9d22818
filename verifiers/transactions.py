"""Is a transaction open that nobody will ever end?

    hung-transaction    after quiesce a partition has an open transaction (DescribeProducers) that its coordinator
                        does not know: the last stable offset stands still for good (KIP-664, KAFKA-14561)

An open transaction that its coordinator does know is no anomaly but a run that did not come to rest.
"""

from harness.verdict import CheckResult, Finding, Reason
from verifiers.findings import explained
from verifiers.tables import Tables

CLAIM = "no partition has an open transaction that its coordinator does not know"
_HUNG = "hung-transaction"


def check(tables: Tables) -> CheckResult:
    still = tables.facts["open_transactions"]
    hung = [each for each in still if each["known_as"] is None]
    reasons = [
        Reason(kind="stalled", says=f"{each['known_as']} still has a transaction open in "
               f"{each['topic']}/{each['partition']}")
        for each in still if each["known_as"] is not None
    ]  # fmt: skip
    findings = []
    if hung:
        samples = [{**each, "offset": each["start_offset"]} for each in hung[: tables.samples_max]]
        says = "partitions have an open transaction that its coordinator does not know"
        samples = explained(tables, _HUNG, samples)
        findings = [Finding(cls=_HUNG, count=len(hung), says=says, samples=samples)]
    return CheckResult(name="transactions", claim=CLAIM, findings=findings, reasons=reasons)


CHECKS = (check,)
