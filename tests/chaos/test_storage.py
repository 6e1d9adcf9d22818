"""Executors that share no folder with the driver judge a run on a Hadoop file system, also when it is full."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tests.mutants.run  # noqa: F401  fills the catalogue
from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.cluster import containers, standalone
from onceproof.verifiers.evidence import spark as sessions
from onceproof.verifiers.evidence.storage import Storage
from onceproof.verifiers.verify import verify
from tests.chaos.hdfs import hdfs
from tests.mutants.catalogue import MUTANTS

pytestmark = [pytest.mark.chaos, pytest.mark.long]
_DEADLINE_S = 300
_UNLIMITED = 2**63 - 1


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone.started(2, share=tmp_path_factory.mktemp("not-used")) as url:
        yield url


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    yield sessions.session()
    sessions.stop()


@pytest.fixture(scope="module")
def uri(master: str, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A folder of a file system in the network of the executors."""
    executors = standalone.containers_of(master)
    (probe := tmp_path_factory.mktemp("probe") / "file").write_text("x")
    with hdfs(executors[0].labels[containers.LABEL], executors) as root:

        def takes_files() -> bool:
            try:
                Storage("local[2]", f"{root}/probe").put(probe.parent)
            except HarnessError:
                return False
            return True

        until(f"{root} takes a file", takes_files, deadline_s=_DEADLINE_S)
        yield f"{root}/runs"


def judged(*arguments: str) -> tuple[int, str]:
    """The exit status of `onceproof verify`, and what it prints on stderr."""
    command = [sys.executable, "-m", "onceproof.cli.main", "verify", *arguments, "--json", os.devnull]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_DEADLINE_S, check=False)
    return done.returncode, done.stderr


def run_in(folder: Path) -> Path:
    return MUTANTS["doubled-before-what-a-reset-read-again"].make()[0].write(folder / "run")


def test_executors_read_what_they_share(master: str, spark: SparkSession, uri: str, tmp_path: Path) -> None:
    there, here = run_in(tmp_path / "there"), run_in(tmp_path / "here")
    status, said = judged(str(there), "--spark-master", master)
    assert (status, said.count("\n")) == (3, 1), said
    assert "executors cannot read it" in said and "or --storage URI" in said
    verify(here)
    expected = (here / "results.json").read_bytes()
    status, said = judged(str(there), "--spark-master", master, "--storage", uri)
    assert status == 1, said
    assert (there / "results.json").read_bytes() == expected
    status, said = judged(f"{uri}/run", "--spark-master", master)
    assert status == 1, said
    Storage("local[2]", f"{uri}/run").fetch(tmp_path / "back")
    assert (tmp_path / "back" / "results.json").read_bytes() == expected
    assert (tmp_path / "back" / "report.html").stat().st_size > 10_000


def test_storage_that_is_full_or_read_only_is_one_line(spark: SparkSession, uri: str, tmp_path: Path) -> None:
    run = run_in(tmp_path)
    hadoop: Any = spark._jvm.org.apache.hadoop  # type: ignore[union-attr]
    small = hadoop.fs.Path(f"{uri}/small")
    files = small.getFileSystem(spark._jsc.hadoopConfiguration())
    files.mkdirs(small)
    files.setQuota(small, _UNLIMITED, 1024)
    status, said = judged(str(run), "--storage", f"{uri}/small")
    assert (status, "DSQuotaExceededException" in said.splitlines()[-1]) == (3, True), said
    Storage("local[2]", f"{uri}/whole").put(run)
    files.setSafeMode(hadoop.fs.SafeModeAction.ENTER)
    status, said = judged(f"{uri}/whole")
    assert (status, "safe mode" in said.splitlines()[-1]) == (3, True), said
    status, said = judged(str(run), "--storage", uri)
    assert (status, "safe mode" in said.splitlines()[-1]) == (3, True), said
