"""A pipeline with outputs in transactions that does not claim the same of its offsets, as Flink's sink does."""

from dataclasses import replace

from onceproof.harness.model.workload import Claim
from onceproof.workloads.copy import COPY

APART = replace(COPY, name="apart", claim=Claim(position="group"))
