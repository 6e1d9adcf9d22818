"""Say of each anomaly class how far a run could show it: the level of proof, and what was judged at all.

    proved        the run would have shown every occurrence
    by presence   an occurrence is shown where it leaves a trace; that there is none is no proof
    by the model  an occurrence is shown as `wrong-aggregate`, where it changes what is compared with the model
    not judged    the run cannot show it

A workload with a name is at level 2, since its expected outputs are known. The level of an application with tables
`[outputs]` is that of its contract (`harness/model/contract.py`).
"""

from collections.abc import Mapping, Sequence

from onceproof.harness.model.contract import Contract, Level
from onceproof.harness.model.workload import Declaration
from onceproof.harness.record.results import CheckResult

PROVED, PRESENCE, MODEL, NOT_JUDGED = "proved", "by presence", "by the model", "not judged"
# The checks that prove a class. Without all of them, it is not judged.
FOUND_BY: Mapping[str, tuple[str, ...]] = {
    "lost": ("exactly-once",),
    "duplicate": ("exactly-once",),
    "phantom": ("exactly-once",),
    "corrupted": ("exactly-once",),
    "reset-skip": ("exactly-once",),
    "reset-reprocess": ("exactly-once",),
    "aborted-read": ("atomicity",),
    "torn-transaction": ("atomicity", "coordinator"),
    "reordered": ("order",),
    "zombie-write": ("zombies",),
    "inconsistent-read": ("readers",),
    "input-lost": ("inputs",),
    "offset-divergence": ("offsets",),
    "hung-transaction": ("transactions", "coordinator"),
    "replica-divergence": ("replicas",),
    "wrong-aggregate": ("aggregate", "model"),
    "unprotected": ("protection",),
}
# What the log shows by itself of classes whose proof needs the input of each output: repeated or missing sequence
# numbers, older epochs, committed offsets that go back, outputs of aborted transactions.
_OF_LOG = ("lost", "duplicate", "aborted-read", "torn-transaction", "zombie-write", "offset-divergence", "unprotected")
# Rows of a table are in no log, so nothing shows which transaction they were written in.
_OF_TABLES = {
    "aborted-read": PRESENCE,
    "torn-transaction": NOT_JUDGED,
    "zombie-write": PRESENCE,
    "offset-divergence": PRESENCE,
}
# What an application commits without a transaction names no process, and of several steps only the offsets of the first
# one are read.
_OF_POSITIONS: Mapping[str, tuple[str, ...]] = {
    "transactional": ("zombie-write", "offset-divergence", "unprotected"),
    "group": ("zombie-write",),
    "none": ("zombie-write",),
}
_BY_MODEL = ("lost", "duplicate", "phantom", "corrupted", "reset-skip", "reset-reprocess")


def level(workload: Declaration) -> Level:
    """Return the level of proof that a workload allows."""
    return 2 if workload.contract is None else workload.contract.level


def classes(workload: Declaration, checks: Sequence[CheckResult]) -> dict[str, str]:
    """Return how far each class was judged, by class. `checks` are the results of the run."""
    judged = {each.name for each in checks if not each.not_judged}
    found = {cls: _how(cls, needed, workload.contract, judged) for cls, needed in FOUND_BY.items()}
    if workload.tables:
        found |= {cls: how for cls, how in _OF_TABLES.items() if found[cls] == PROVED}
    if workload.contract is not None:
        seldom = _OF_POSITIONS.get(workload.claim.position, ())
        found |= {cls: PRESENCE for cls in seldom if found[cls] == PROVED}
    return found


def _how(cls: str, needed: tuple[str, ...], contract: Contract | None, judged: set[str]) -> str:
    if cls == "wrong-aggregate" and contract is not None and contract.compare == "each":
        return NOT_JUDGED  # a wrong output is `corrupted` then
    if contract is None or contract.ids:
        there = any(each in judged for each in needed)
        if cls == "corrupted" and contract is not None and not (contract.model and contract.compare == "each"):
            return PRESENCE if there else NOT_JUDGED
        return PROVED if there else NOT_JUDGED
    if cls in _BY_MODEL and "model" in judged:
        return MODEL
    if cls in _OF_LOG:
        return PRESENCE if judged & {"coordinator", *needed} else NOT_JUDGED
    return PROVED if any(each in judged for each in needed) else NOT_JUDGED
