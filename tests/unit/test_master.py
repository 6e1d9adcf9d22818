"""The same folder judged by Spark in this process and by a Spark cluster of processes: the same results."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from onceproof.verifiers.verify import verify
from tests.mutants.catalogue import MUTANTS
from tests.mutants.of_transactions import half_committed_within_a_topic

_DEADLINE_S = 300


def results(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return found


def test_a_cluster_of_processes_says_the_same(spark: SparkSession, tmp_path: Path) -> None:
    run, expected = MUTANTS[half_committed_within_a_topic.__name__.replace("_", "-")].make()
    here, there = run.write(tmp_path / "here"), run.write(tmp_path / "there")
    verify(here)
    command = [
        sys.executable,
        "-m",
        "onceproof.cli.main",
        "verify",
        str(there),
        "--spark-master",
        "local-cluster[2,1,1024]",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_DEADLINE_S, check=False)
    assert (there / "results.json").exists(), done.stderr[-2000:]
    assert {finding["cls"] for finding in results(there)["findings"]} == set(expected)
    assert results(there) == results(here)
