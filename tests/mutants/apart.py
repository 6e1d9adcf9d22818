"""Pipelines that claim less than `copy` does.

`APART` has outputs in transactions and does not claim the same of its offsets, as Flink's sink does. `STEPS` commits
its offsets in transactions, and not always in that of their outputs. `KEPT` keeps them in a database instead, and
`NOWHERE` commits none. `ANYWHERE` does not say in which partition the output of an input is, and `UNNAMED` not even of
which input an output is.
"""

from dataclasses import replace

from onceproof.harness.model.contract import Contract, expression
from onceproof.harness.model.workload import Claim
from onceproof.workloads.copy import COPY

APART = replace(COPY, name="apart", claim=Claim(position="group"))
STEPS = replace(COPY, name="steps", claim=Claim(position="transactional"))
KEPT = replace(COPY, name="kept", claim=Claim(position="database"))
NOWHERE = replace(COPY, name="nowhere", claim=Claim(position="none"))
UNNAMED = replace(COPY, name="unnamed", contract=Contract())
ANYWHERE = replace(
    COPY,
    name="anywhere",
    contract=Contract(ids={"output": expression("key")}),
    expected="SELECT 'output' AS topic, -1 AS partition, number, digest, input FROM inputs",
)
