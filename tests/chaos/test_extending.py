"""A fault, a check and a workload from an installed package, in a run on a real cluster."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.extras import installed

SCENARIO = """
name = "invoices-segments-rolled"
about = "The log of an output topic is rolled while orders become invoices."

[workload]
name = "invoices"
records = 10_000
records_per_s = 2_000

[[faults]]
name = "roll-segments"
topic = "review"
at_s = 2
lasts_s = 4

[expect]
verdict = "valid"
"""


@pytest.mark.chaos
@pytest.mark.quick
def test_parts_of_an_installed_package_take_part_in_a_run(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO)
    command = [sys.executable, "-m", "onceproof.cli.main", "run", str(tmp_path / "s.toml"), "--runs", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(installed(tmp_path))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [folder] = tmp_path.glob("invoices-segments-rolled-*")
    results = json.loads((folder / "results.json").read_text())
    compared = {check["name"]: check["compared"] for check in results["checks"]}
    assert compared["sequences"]["batches"] > 0
    assert compared["exactly-once"]["outputs"] >= 10_000
    history = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    [noted] = [event for event in history if event["event"] == "noted"]
    assert noted["data"]["rolled"] > 0
