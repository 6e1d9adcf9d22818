"""Two oracles, one answer: the PySpark verifiers and a plain one in Python agree on class and coordinates.

Hypothesis draws the cases; all of them are judged in one Spark job, each in partitions of its own: one pipeline's as a
small run is, the other's as a large one. Set ONCEPROOF_CASES for more of them.

The drawn runs have no coordinators' logs, so the checks that need them are left out, with their classes.
"""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.sql import SparkSession

from onceproof.harness.model import plan
from onceproof.harness.model.scenario import parse
from onceproof.verifiers.evidence import tables
from onceproof.verifiers.evidence.check import COORDINATOR_LOG
from onceproof.verifiers.verify import all_checks
from tests.histories import Small, small_runs
from tests.oracle import Oracle
from tests.packing import judge, pack

CASES = int(os.environ.get("ONCEPROOF_CASES", "1000"))
PIPELINES = {"copy": (("output",), tables.SMALL), "fan-out": (("stock", "payment"), 0)}


@pytest.mark.parametrize("pipeline", sorted(PIPELINES))
def test_both_oracles_say_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pipeline: str
) -> None:
    topics, small = PIPELINES[pipeline]
    monkeypatch.setattr(tables, "SMALL", small)
    cases: list[Small] = []

    @settings(
        max_examples=CASES, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(small_runs(topics))
    def draw(run: Small) -> None:
        cases.append(run)

    draw()
    raw = {"name": "small", "about": "drawn", "workload": {"name": pipeline, "partitions": 2}}
    cases[0].plan_json = plan.make(parse(raw, where="test"), 1).to_json()
    checks = [check for check in all_checks() if COORDINATOR_LOG not in check.needs and check.name != "history"]
    found = judge(pack(cases).write(tmp_path / "run"), spark, len(cases), checks)
    wrong = []
    for case, told in zip(cases, found, strict=True):
        should = Oracle(case, topics).judge()
        should.findings.pop("offset-divergence", None)
        if (should.findings, should.incomplete) != (told.findings, told.incomplete):
            wrong.append((len(case.inputs) + len(case.events), case, should, told))
    wrong.sort(key=lambda each: each[0])
    if wrong:
        _, case, should, told = wrong[0]
        case.write(tmp_path / "smallest")
        where = f"{len(wrong)} of {len(cases)} differ; the smallest ({tmp_path / 'smallest'})"
        pytest.fail(f"{where}: Python says {should}, PySpark says {told}", pytrace=False)
    broken = sum(bool(each.findings) for each in found)
    assert broken > CASES / 4, f"only {broken} of {len(cases)} cases had anything to find"
