"""What cannot be run fails a chaos test in one line, before a cluster is started."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest
from pyspark.sql import SparkSession

from onceproof.harness.artifacts import jars
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.model.scenario import Scenario
from onceproof.pytest_plugin import Chaos
from onceproof.run import spark_warmup
from onceproof.suite import preflight
from tests.unit.test_hostile import GOOD, work
from tests.unit.test_package import stubs
from tests.unit.test_preflight import _WORKLOAD, program

ROOT = Path(__file__).parents[2]
_DEADLINE_S = 120
_TESTS = """
import pytest

@pytest.mark.chaos("bad.toml")
def test_of_chaos(chaos):
    chaos.check()
"""
_FORGOTTEN = """
import pytest

@pytest.mark.chaos("any.toml")
def test_without_the_fixture():
    pass

@pytest.mark.chaos("copy-broker-killed")
def test_without_a_call(chaos):
    pass

@pytest.mark.chaos
def test_that_names_no_scenario():
    pass
"""
# There may be no network, and which release is the newest one changes.
_NEWEST = """
from onceproof.harness.artifacts import jars

jars._newest = {"4.1.+": "4.1.2"}.__getitem__
"""


def _pytest(folder: Path, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A session of pytest in this folder, with no plugin but onceproof's."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "onceproof.pytest_plugin", *options],
        cwd=folder,
        env={**os.environ, **env, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )


def test_a_marker_alone_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(_FORGOTTEN)
    # Where CI is set, the short summary repeats each failure in full.
    done = _pytest(tmp_path, "-rN")
    assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    for says in ("give the test the fixture `chaos`, and call chaos.check()", "was not run: call chaos.check()"):
        assert done.stdout.count(f"{says}\n") == 1


def test_an_unknown_key_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(_TESTS)
    (tmp_path / "conftest.py").write_text(_NEWEST)
    (tmp_path / "bad.toml").write_text(work("recrods = 5"))
    path = stubs(tmp_path / "bin", docker=f"touch {tmp_path}/engine; exit 1")
    done = _pytest(tmp_path, "--chaos-seed", "3", "--chaos-kafka", "4.1.x", PATH=path)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "onceproof: --chaos-seed=3 --chaos-kafka=4.1.2\n" in done.stdout, "the line 4.1.x is a release"
    [_, failure] = done.stdout.split("test_of_chaos ____", 1)
    [_, said, *_] = failure.splitlines()
    assert said.startswith(f"{tmp_path}/bad.toml: workload.recrods: unknown key; did you mean records?; allowed: ")
    assert "Traceback" not in done.stdout and "pytest_plugin.py" not in done.stdout
    assert not (tmp_path / "engine").exists() and not (tmp_path / "runs").exists()


class NoClusters:
    """The clusters of a session in which none may be started."""

    def get(self, _spec: object) -> NoReturn:
        raise AssertionError("a cluster was started")


def refused(scenario: Path, *, runs: Path, version: str | None = None) -> str:
    """What the test says that starts a run of this scenario, which cannot be run."""
    chaos = Chaos(cast(Any, NoClusters()), scenario, seed=1, runs=runs, version=version)
    with pytest.raises(pytest.fail.Exception) as failed:
        chaos.start()
    assert failed.value.pytrace is False
    assert failed.value.msg is not None and "\n" not in failed.value.msg
    return failed.value.msg


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.toml"
    path.write_text(GOOD)
    return path


def test_a_folder_for_runs_that_cannot_be_written(good: Path) -> None:
    assert refused(good, runs=Path("/proc/none")).startswith("/proc/none: cannot be written: ")


def test_a_machine_that_cannot_be_used(good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin", "echo 'openjdk version \"25\" 2025-09-16' >&2")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert "is Java 25 (on PATH); allowed: Java 17 to 22" in refused(good, runs=tmp_path)


def test_the_release_of_the_session_is_the_one_that_is_checked(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(version: str) -> NoReturn:
        raise HarnessError(f"kafka-{version}: Maven Central did not answer")

    monkeypatch.setattr(jars, "kafka", unreachable)
    assert refused(good, runs=tmp_path, version="4.1.2") == "kafka-4.1.2: Maven Central did not answer"


def test_sql_that_spark_does_not_accept(spark: SparkSession, good: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(_WORKLOAD.format(change='"identity": "xxhash64(kye)"'))
    good.write_text(GOOD.replace("copy", f"{mine}:MINE"))
    assert refused(good, runs=tmp_path).startswith(f"{good}: workload '{mine}:MINE': identity: ")


def test_spark_is_not_started_for_what_is_refused(good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the end of the session waits for it."""
    started: list[str] = []

    def start(_master: str, scenario: Scenario) -> Callable[[], None]:
        started.append(scenario.workload.name)
        return lambda: None

    monkeypatch.setattr(spark_warmup, "start_spark", start)
    good.write_text(f'checks = ["odrer"]\n{GOOD}')
    assert f"{good}: checks[0]: unknown check 'odrer'" in refused(good, runs=tmp_path)
    assert started == []
    good.write_text(GOOD)
    monkeypatch.setattr(preflight, "check", lambda *_: None)
    with pytest.raises(AssertionError, match="a cluster was started"):
        Chaos(cast(Any, NoClusters()), good, seed=1, runs=tmp_path, version=None).start()
    assert started == ["copy"]
