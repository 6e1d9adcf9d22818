"""Is each partition whole in the tables? Only then may a missing record be called lost.

In each partition, end − start = visible + aborted + control offsets: the batches account for every offset, and Spark's
reader saw as many records as the log says are visible.

    output/3   end 1040   visible 1000 (Spark: 1000)   aborted 30   control 10      whole
    output/4   end 1040   visible 1000 (Spark:  999)   aborted 30   control 10      incomplete: findings by absence off
"""

from harness.verdict import CheckResult, Reason
from verifiers import summary
from verifiers.tables import Tables

CLAIM = "every offset of every judged partition is accounted for: visible, aborted or control"


def incomplete(tables: Tables) -> list[str]:
    """One line for each partition that is not whole."""
    logs, contents = summary.logs(tables), summary.contents(tables)
    problems = []
    for each in tables.pinned:
        topic, partition = each["topic"], each["partition"]
        length = each["end"] - each["start"]
        log = logs.get((topic, partition, each["leader"]))
        offsets = log.offsets if log else dict.fromkeys(summary.FATES, 0)
        kind = "inputs" if topic == tables.input_topic else "outputs"
        seen = contents.get((kind, topic, partition), summary.NOTHING).rows
        if sum(offsets.values()) != length:
            found = sum(offsets.values())
            problems.append(f"{topic}/{partition}: {length} offsets, the log's batches account for {found}")
        elif seen != offsets["visible"]:
            problems.append(f"{topic}/{partition}: {offsets['visible']} visible in the log, the reader saw {seen}")
    return problems


def check(tables: Tables) -> CheckResult:
    reasons = [Reason(kind="indeterminate", says=f"incomplete: {problem}") for problem in incomplete(tables)]
    reasons += [
        Reason(kind="indeterminate", says=f"somebody wrote while it was read: {moved}")
        for moved in tables.facts["moved"]
    ]
    deleted = {mark["partition"] for mark in tables.deletes}
    reasons += [
        Reason(kind="indeterminate", says=f"{each['topic']}/{each['partition']} starts at {each['start']}: no fault "
               "deleted its records")
        for each in tables.pinned
        if each["start"] and not (each["topic"] == tables.input_topic and each["partition"] in deleted)
    ]  # fmt: skip
    return CheckResult(name="completeness", claim=CLAIM, reasons=reasons)


CHECKS = (check,)
