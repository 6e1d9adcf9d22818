"""Deduplicated: at-least-once delivery into a database that remembers the ids of the inputs it has taken.

    BEGIN; 41 → seen, unless it is there; if it was not: 41 → results; COMMIT        then the group commits its offset

A worker that is killed between the two reads its inputs again, and finds their ids with the rows that they gave. Rows
and ids are in one transaction, so an id is there if, and only if, its row is. The pattern is the idempotent receiver of
"Enterprise Integration Patterns" (Hohpe and Woolf).

    deduplicated-window    the database remembers the last 20 ids only, and a batch has more         → duplicate
"""

from dataclasses import replace
from functools import partial

from onceproof.harness.model.workload import Claim, Wiring, Workload, one_on_each
from onceproof.workloads.copy import copy

DEDUPLICATED = Workload(
    name="deduplicated",
    about="Deduplicated: rows in a database, whose inputs may be delivered more than once and are known by their ids.",
    transform=partial(copy, topic="results"),
    expected=one_on_each("results"),
    topics=(),
    tables=("results",),
    claim=Claim(transactional=False, position="group"),
    wiring=Wiring(position="after", remembers=None),
)
WINDOW = replace(
    DEDUPLICATED,
    name="deduplicated-window",
    about="Broken on purpose: the database remembers the ids of the last 20 inputs only.",
    wiring=replace(DEDUPLICATED.wiring, remembers=20),
)
