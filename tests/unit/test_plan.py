"""The plan is a function of scenario and seed, to the byte."""

from pathlib import Path

import pytest

from onceproof.harness.base.errors import BadInput
from onceproof.harness.model import plan
from onceproof.harness.model.scenario import Scenario, parse

RAW = {
    "name": "x",
    "about": "a test",
    "workload": {"name": "copy"},
    "client": {"config": {"sasl.username": "me", "sasl.password": "hush", "linger.ms": 3}},
    "faults": [{"name": "kill", "target": "broker-random", "at_s": 1}],
}


def scenario() -> Scenario:
    return parse(RAW, where="test")


def test_same_scenario_and_seed_same_bytes() -> None:
    assert plan.make(scenario(), 7).to_json() == plan.make(scenario(), 7).to_json()


def test_another_seed_another_plan() -> None:
    plans = {plan.make(scenario(), seed).to_json() for seed in range(5)}
    assert len(plans) == 5
    chosen = {plan.make(scenario(), seed).faults[0].spec.model_dump()["target"] for seed in range(30)}
    assert chosen == {"broker-1", "broker-2", "broker-3"}


def test_it_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    made = plan.make(scenario(), 7)
    path.write_text(made.to_json())
    again = plan.read(path)
    assert again.to_json() == made.to_json()
    assert again.digest == made.digest


def test_secrets_stay_out() -> None:
    text = plan.make(scenario(), 7).to_json()
    assert "hush" not in text
    assert '"linger.ms": 3' in text


@pytest.mark.parametrize("text", ["", "[]", '{"schema_version": 99}', '{"schema_version": 1}', "{"])
def test_what_is_no_plan_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"plan\.json"):
        plan.read(path)
