"""Two oracles, one answer: the PySpark verifiers and a plain one in Python agree on classes, places, reasons, verdict.

Hypothesis draws the cases. Those of which the plain oracle gives no reason are judged in one Spark job, each in
partitions of its own, and the verifiers must give none either; those with reasons in another one, in which the
verifiers must give reasons of the same kinds. Large and small runs are planned differently: some cases are judged as
large ones are. Set ONCEPROOF_CASES for more cases.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.sql import SparkSession

from onceproof.harness.model import plan
from onceproof.harness.model.scenario import parse
from onceproof.verifiers.evidence import tables
from tests import oracle
from tests.histories import SHAPES, Shape, Small, small_runs
from tests.oracle import Verdict
from tests.packing import Found, Place, judge, pack

CASES = int(os.environ.get("ONCEPROOF_CASES", "100"))
_AS_LARGE = (("fan-out", True), ("sums", False))  # shapes, and whether their cases have reasons
_FOLDER = re.compile("never started|reported nothing|observer saw nothing")
_OF_THE_FOLDER = ("nobody-watched", "never-started", "silent")  # rules that see the whole folder, not one case


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_both_oracles_say_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    cases = [(run, _told(run)) for run in _drawn(SHAPES[name])]
    wrong = []
    for number, reasons in enumerate((False, True)):
        alike = [(run, told) for run, told in cases if bool(told.reasons) == reasons]
        with monkeypatch.context() as patch:
            if (name, reasons) in _AS_LARGE:
                patch.setattr(tables, "SMALL", 0)
            if alike:
                wrong += _differences(spark, tmp_path / str(number), alike)
    wrong.sort(key=lambda each: each[0])
    if wrong:
        _, run, says = wrong[0]
        if run:
            run.write(tmp_path / "smallest")
        pytest.fail(
            f"{len(wrong)} of {len(cases)} differ; the smallest ({tmp_path / 'smallest'}): {says}", pytrace=False
        )
    broken = sum(bool(told.findings) for _, told in cases)
    assert broken > CASES / 4, f"only {broken} of {len(cases)} cases had anything to find"


def _drawn(shape: Shape) -> list[Small]:
    cases: list[Small] = []

    @settings(
        max_examples=CASES, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(small_runs(shape))
    def draw(run: Small) -> None:
        cases.append(run)

    raw = {"name": "small", "about": "drawn", "workload": {"name": shape.workload, "partitions": 2}}
    draw()
    for run in cases:
        run.plan_json = plan.make(parse(raw, where="test"), 1).to_json()
    return cases


def _told(run: Small) -> Verdict:
    verdict = oracle.judge(run)
    verdict.reasons = {each for each in verdict.reasons if each.rule not in _OF_THE_FOLDER}
    return verdict


def _differences(
    spark: SparkSession, folder: Path, cases: Sequence[tuple[Small, Verdict]]
) -> list[tuple[int, Small | None, str]]:
    """Cases that are judged differently, with their size; None for the reasons of all of them."""
    found = judge(pack([run for run, _ in cases]).write(folder), spark, len(cases))
    wrong: list[tuple[int, Small | None, str]] = []
    for (run, should), told in zip(cases, found, strict=True):
        one, other = (_settled(each.findings, run, should) for each in (should, told))
        if (one, should.incomplete) != (other, told.incomplete):
            wrong.append((len(run.inputs) + len(run.events), run, f"Python says {should}, PySpark says {told}"))
    kinds = _kinds(found)
    should_be = set[str]().union(*(told.kinds for _, told in cases))
    if kinds.keys() != should_be:
        wrong.append((0, None, f"Python gives reasons of the kinds {sorted(should_be)}, PySpark {kinds}"))
    return wrong


def _settled(findings: Mapping[str, set[Place]], run: Small, should: Verdict) -> dict[str, set[Place]]:
    """Without the offsets of a chain's input that is not whole: whether a transaction did inputs again that nobody has
    read is told differently there."""
    if run.shape.workload != "chain":
        return dict(findings)
    kept = {
        cls: {place for place in each if cls != "offset-divergence" or place[:2] not in should.incomplete}
        for cls, each in findings.items()
    }
    return {cls: each for cls, each in kept.items() if each}


def _kinds(found: Sequence[Found]) -> dict[str, str]:
    """The kinds of reasons that the verifiers gave, each with one of them."""
    reasons = [each for one in found for each in one.reasons if " × " not in each and not _FOLDER.search(each)]
    return {kind: says for kind, _, says in (each.partition(": ") for each in reasons)}
