"""A query that does not end is cancelled, and the check is not judged; Ctrl-C ends a verdict promptly."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from onceproof.harness.base.errors import BadInput
from onceproof.verifiers.evidence.time_limit import VARIABLE, limit_s
from onceproof.verifiers.verify import verify
from tests.unit.good_run import GoodRun

_STARTED_S = 240  # on a busy machine
_ENDED_S = 60  # as above; the query has no end at all
# Spark takes less than this until it begins with the query, and the query takes a core from then on.
_QUERYING_CPU_S = 40
_MODEL = (
    "SELECT 'output' AS topic, partition, number, digest, input FROM inputs "
    "WHERE (SELECT sum(cast(a.id * b.id % 7 AS double)) FROM range(10000000) a, range(10000000) b "
    "WHERE a.id + b.id > 0) < 0"
)


def endless(run: GoodRun, folder: Path) -> Path:
    """A run's folder whose workload has a model that does not end."""
    run.write(folder)
    declared = json.loads((folder / "workload.json").read_text()) | {"expected": _MODEL}
    (folder / "workload.json").write_text(json.dumps(declared))
    _reseal(folder)
    return folder


def _reseal(folder: Path) -> None:
    from onceproof.harness.record import manifest

    (folder / "manifest.json").unlink()
    manifest.seal(folder)


def test_a_model_that_does_not_end_is_cancelled(
    spark: SparkSession, good_run: GoodRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = endless(good_run, tmp_path / "run")
    monkeypatch.setenv(VARIABLE, "10")
    results = verify(folder)
    assert results.verdict == "unknown"
    told = {check.name: check.not_judged for check in results.checks}
    assert "not done within 10 s" in told["exactly-once"] or "could not be computed in time" in told["exactly-once"]
    assert not told["replicas"]  # it does not need the model
    assert any("was not judged: " in reason.says for reason in results.reasons)
    assert {reason.kind for reason in results.reasons} == {"indeterminate"}


@pytest.mark.parametrize("told", ["0", "-1", "nan", "inf", "soon", "1e9"])
def test_a_limit_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    monkeypatch.setenv(VARIABLE, told)
    with pytest.raises(BadInput, match=VARIABLE):
        limit_s(1)


def test_the_limit_grows_with_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert limit_s(0) < limit_s(10_000_000)


_STOPPED = """
import os, signal
from onceproof.verifiers.evidence import spark, time_limit
time_limit._GRACE_S = 2.0
session = spark.session()
os.kill(spark._gateways[0].proc.pid, signal.SIGSTOP)
try:
    with time_limit.Watch(session, limit_s=1) as watch:
        watch.run("the check of a stopped Spark", lambda: session.range(10).count())
except time_limit.Overdue as error:
    print(error)
"""


def test_a_query_that_cannot_be_cancelled_is_ended_with_spark() -> None:
    command = [sys.executable, "-c", _STOPPED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_STARTED_S, check=False)
    says = "Spark was ended, because a query could not be cancelled"
    assert done.stdout == f"{says} ({VARIABLE} sets the limit)\n", done.stderr


def end(process: psutil.Process) -> None:
    """Kill what is left of a process and its children."""
    with suppress(psutil.NoSuchProcess):
        for child in process.children(recursive=True):
            child.kill()
        process.kill()


class Command:
    """`onceproof verify` of an endless run, in a terminal of its own, after Spark has begun with the query."""

    def __init__(self, folder: Path) -> None:
        self._terminal, other = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "onceproof.cli.main", "verify", str(folder)],
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
        )
        os.close(other)
        self._me = psutil.Process(self.process.pid)
        deadline = time.monotonic() + _STARTED_S
        while self._java_s() < _QUERYING_CPU_S:
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.close()
                pytest.fail("the query did not begin")
            time.sleep(0.2)

    def _java_s(self) -> float:
        """The CPU time that Spark's JVM has taken, in seconds."""
        spent = 0.0
        with suppress(psutil.Error):
            for child in self._me.children(recursive=True):
                spent += child.cpu_times().user if child.name() == "java" else 0.0
        return spent

    def hang_up(self) -> None:
        os.close(self._terminal)

    def ended(self) -> tuple[int, list[psutil.Process]]:
        """The exit status, and the child processes that are still there."""
        children = self._me.children(recursive=True)
        status = self.process.wait(_ENDED_S)
        return status, psutil.wait_procs(children, timeout=5)[1]

    def close(self) -> None:
        """End what is left."""
        end(self._me)
        self.process.wait()
        with suppress(OSError):
            os.close(self._terminal)


@pytest.fixture
def command(good_run: GoodRun, tmp_path: Path) -> Iterator[Command]:
    with closing(Command(endless(good_run, tmp_path / "run"))) as started:
        yield started


def test_ctrl_c_ends_a_verdict_that_does_not_end(command: Command) -> None:
    command.process.send_signal(signal.SIGINT)
    status, left = command.ended()
    assert status == 128 + signal.SIGINT
    assert not left


@pytest.mark.long
def test_a_terminal_that_is_closed_ends_it_in_order(command: Command) -> None:
    command.hang_up()
    command.process.send_signal(signal.SIGHUP)
    status, left = command.ended()
    assert status == 128 + signal.SIGHUP
    assert not left


_SLOW_TO_END = """
import subprocess, sys, time
from onceproof.cli import commands, main

def slow(_options):
    subprocess.Popen(["sleep", "600"])
    try:
        print("working", flush=True)  # the first signal may come at once
        time.sleep(600)
    finally:
        print("ending", flush=True)
        time.sleep(600)

commands.doctor = slow
sys.exit(main.main(["doctor"]))
"""


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", _SLOW_TO_END]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        me = psutil.Process(started.pid)
        yield started
        end(me)


def test_a_second_signal_ends_at_once(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == b"working\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == b"ending\n"
    children = psutil.Process(process.pid).children()
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=_ENDED_S)[1].decode()
    assert process.returncode == 128 + signal.SIGINT
    assert "onceproof clean" in told
    assert children and not psutil.wait_procs(children, timeout=5)[1]
