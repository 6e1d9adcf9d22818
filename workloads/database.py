"""Database: each input gives one row, and rows and positions are in one transaction of a database, outside of Kafka.

    positions: input/3 → 41        BEGIN; 41 42 43 → results; positions: input/3 → 44; COMMIT

The database is SQLite or PostgreSQL (`workload.database`). The consumer commits no offsets to Kafka. When a worker
starts, and after each rebalance, it seeks to the positions that the database holds. A worker that was taken for dead is
fenced by the database, where its partitions have another owner now. The book of this pattern is "Designing
Data-Intensive Applications" (Kleppmann), chapter 11: an idempotent or atomic sink needs no transaction that spans both
systems.

    database-apart       positions in a transaction of their own, after that of the rows: a worker that is killed
                         between the two writes its rows again                                          → duplicate
    database-unfenced    positions are updated whoever owns the partition: a zombie writes its rows
                         beside its successor's                                                         → duplicate
"""

from dataclasses import replace
from functools import partial

from onceproof.harness.model.workload import Claim, Workload, one_on_each
from onceproof.workloads.copy import copy

DATABASE = Workload(
    name="database",
    about="Database: one row for each input; rows and positions are in one transaction of a database.",
    transform=partial(copy, topic="results"),
    expected=one_on_each("results"),
    topics=(),
    tables=("results",),
    claim=Claim(transactional=False, position="database"),
)
APART = replace(
    DATABASE,
    name="database-apart",
    about="Broken on purpose: positions are in a transaction of their own, after that of the rows.",
    wiring=replace(DATABASE.wiring, position="after"),
)
UNFENCED = replace(
    DATABASE,
    name="database-unfenced",
    about="Broken on purpose: the database does not fence a worker whose partitions have another owner.",
    wiring=replace(DATABASE.wiring, fenced=False),
)
