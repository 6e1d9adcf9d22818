"""Where the executors of a master run, and the same results from this process and from a cluster of processes."""

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from onceproof.harness.base.errors import HarnessError
from onceproof.verifiers.evidence import executors, master, reading, spark_settings
from onceproof.verifiers.verify import verify
from tests.mutants.catalogue import MUTANTS
from tests.mutants.of_transactions import half_committed_within_a_topic
from tests.unit.good_run import GoodRun

_DEADLINE_S = 300


def results(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return found


@pytest.mark.long  # `test_spark_cluster` has executors in containers
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


@pytest.mark.parametrize(
    ("url", "in_driver", "elsewhere"),
    [
        ("local[2]", True, False),
        ("local", True, False),
        ("local-cluster[2,1,1024]", False, False),
        ("spark://127.0.0.1:7077", False, False),
        ("spark://localhost:7077", False, False),
        ("spark://10.213.0.2:7077", False, True),
        ("spark://127.0.0.1:7077,spark.example:7077", False, True),
        ("yarn", False, True),
        ("k8s://https://127.0.0.1:6443", False, True),
    ],
)
def test_where_executors_run(url: str, in_driver: bool, elsewhere: bool) -> None:
    assert (master.one_process(url), master.elsewhere(url)) == (in_driver, elsewhere)


def test_executors_elsewhere_get_the_address_that_reaches_their_master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert master.address_towards(f"spark://127.0.0.1:{listening.getsockname()[1]}") == "127.0.0.1"
    assert spark_settings.own_address("local[2]") == "127.0.0.1"
    monkeypatch.setenv("SPARK_LOCAL_IP", "10.213.0.1")
    assert spark_settings.own_address("spark://10.213.0.2:7077") == "10.213.0.1"
    assert spark_settings.settings("spark://10.213.0.2:7077")["spark.driver.bindAddress"] == "10.213.0.1"
    assert spark_settings.settings("local[2]")["spark.driver.bindAddress"] == "127.0.0.1"


def test_a_master_that_refuses_connections_is_no_bad_input() -> None:
    """The option is right, and what it names does not work: status 3."""
    with pytest.raises(HarnessError, match="does not answer: Connection refused"):
        master.check("spark://127.0.0.1:1")


def test_files_that_executors_cannot_write_are_an_error(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HarnessError, match="executors cannot write into it"):
        executors.check_folder(spark, tmp_path / "file")


def test_executors_can_be_asked_after_a_verdict(spark: SparkSession, good_run: GoodRun, tmp_path: Path) -> None:
    """A verdict takes the functions that call Java from its session, in which the next run is collected."""
    assert verify(good_run.write(tmp_path / "run")).verdict == "valid"
    executors.check_reads(spark, tmp_path)
    with pytest.raises(HarnessError, match="missing: executors cannot read it"):
        executors.check_reads(spark, tmp_path / "missing")


def test_what_is_read_is_told(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_EVERY_S", 0.1)
    told: list[str] = []
    with reading.told(spark, told.append, total=10):
        time.sleep(0.5)
    assert told[-1] == "0 of 10 records, 0/s"
    assert reading.said(5_000_000, 20_000_000, 10.0) == "5,000,000 of 20,000,000 records, 500,000/s, 30 s left"
    assert reading.said(5_000, 0, 10.0) == "5,000 records, 500/s"
