"""Parts from outside the tree: by FILE.py:NAME, and by the entry points of an installed package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from onceproof.harness.base.errors import BadInput
from onceproof.harness.model import plan, registry
from onceproof.harness.model.scenario import parse
from tests.extras import EXTRAS, installed

MODULES = EXTRAS / "onceproof_extras"
SYSTEM = """
from dataclasses import replace
from onceproof.harness.cluster.kafka import SYSTEM as KAFKA

SYSTEM = replace(KAFKA, name="pipes", capabilities=frozenset({"log-access"}), versions="1[.]0")
"""


def scenario(**more: object) -> dict[str, object]:
    return {"name": "x", "about": "x", "workload": {"name": f"{MODULES}/workload.py:INVOICES"}, **more}


def test_a_workload_a_fault_and_a_check_by_file() -> None:
    fault = {"name": f"{MODULES}/fault.py:FAULT", "at_s": 1, "topic": "review", "every_ms": 200}
    parsed = parse(scenario(faults=[fault], checks=[f"{MODULES}/check.py:CHECK"]), where="test")
    [planned] = plan.make(parsed, 1).faults
    assert planned.id == "0-roll-segments"
    assert planned.spec.model_dump()["every_ms"] == 200
    assert registry.workload(parsed.workload.name).topics == ("invoices", "review")
    assert registry.get("check", parsed.checks[0]).name == "sequences"


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("faults", [{"name": f"{MODULES}/fault.py:FAULT", "at_s": 1, "every": 1}], "faults[0].every: unknown key"),
        ("faults", [{"name": f"{MODULES}/fault.py:FLOOD", "at_s": 1}], "fault.py has no FLOOD"),
        ("faults", [{"name": f"{MODULES}/none.py:FAULT", "at_s": 1}], "no Python file at"),
        ("faults", [{"name": f"{MODULES}/check.py:CHECK", "at_s": 1}], "expected name, about, params"),
        ("workload", {"name": f"{MODULES}/fault.py:FAULT"}, "expected a Workload"),
        ("cluster", {"system": f"{MODULES}/fault.py:FAULT"}, "cluster.system: system "),
        ("cluster", {"system": "zookeeper"}, "unknown system 'zookeeper'; allowed: kafka"),
    ],
)
def test_what_is_no_such_part_is_refused(key: str, value: object, says: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse(scenario(**{key: value}), where="test")
    assert says in str(refused.value)


def test_a_system_says_its_versions_and_what_it_can_do(tmp_path: Path) -> None:
    (tmp_path / "pipes.py").write_text(SYSTEM)
    cluster = {"system": f"{tmp_path}/pipes.py:SYSTEM", "version": "1.0"}
    assert parse(scenario(cluster=cluster), where="test").cluster.version == "1.0"
    with pytest.raises(BadInput, match=r"cluster\.version: 4\.3\.1; allowed"):
        parse(scenario(cluster={**cluster, "version": "4.3.1"}), where="test")
    kill = {"name": "kill", "target": "broker-1", "at_s": 1}
    with pytest.raises(BadInput, match="kill needs nodes, which the system pipes does not have"):
        parse(scenario(cluster=cluster, faults=[kill]), where="test")


def test_an_installed_package_is_listed(tmp_path: Path) -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "onceproof.cli.main", "list"],
        env={**os.environ, "PYTHONPATH": str(installed(tmp_path)), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    names = {tuple(line.split("\t")[:2]) for line in listed.splitlines()}
    assert {("fault", "roll-segments"), ("check", "sequences"), ("workload", "invoices")} <= names


def test_two_packages_with_one_name_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text("[onceproof.faults]\nkill = other:KILL\n")
    run = subprocess.run(
        [sys.executable, "-m", "onceproof.cli.main", "run", "copy-broker-killed"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 2
    assert "fault 'kill' is registered twice: " in run.stderr
    assert run.stderr.count("\n") == 1
