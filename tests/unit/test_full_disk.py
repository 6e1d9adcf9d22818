"""A disk that is full at any time of a run, or while a folder is judged: `unknown: harness-error`, and whole files.

A limit on the size of a file stands for the full disk, since it makes `write` fail in the same way. One test has a
small file system of its own, where it may mount one.
"""

import errno
import json
import resource
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import SparkSession

from onceproof.cli import commands, main
from onceproof.harness.base import files
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.base.progress import Progress
from onceproof.harness.cluster.cluster import Cluster
from onceproof.harness.context.failures import Failures
from onceproof.harness.context.process import Child
from onceproof.harness.model.scenario import parse
from onceproof.harness.record import history, manifest, results
from onceproof.harness.record.events import HarnessFailed, HistoryBegins, Ready
from onceproof.harness.record.history import History
from onceproof.harness.record.results import Results
from onceproof.run.room import Room
from onceproof.run.run import Run
from tests.unit.good_run import GoodRun

_FEW_BYTES = 600
_TOO_LARGE = "File too large"  # what the limit says in place of "No space left on device"
_SCENARIO = {"name": "full", "about": "a run on a full disk", "workload": {"name": "copy"}}


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def fill(log: History) -> None:
    """Append events until one is not written."""
    for number in range(10_000):
        log.append("worker-0", Ready(incarnation=number))
        if log.lost is not None:
            return
    raise AssertionError("the disk was never full")


# Single files


def test_a_file_that_cannot_be_written_keeps_its_content(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    files.write(path, "old")
    with files_of_at_most(10), pytest.raises(OSError, match=_TOO_LARGE):
        files.write(path, "new" * 10)
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["results.json"]
    files.write(path, "new" * 10)
    assert path.read_text() == "new" * 10


def test_a_history_that_cannot_be_written_ends_the_run_and_no_thread(tmp_path: Path) -> None:
    log, failures = History(tmp_path / "history.jsonl"), Failures()
    log.when_lost(failures.end)
    with files_of_at_most(_FEW_BYTES):
        fill(log)
        thread = threading.Thread(target=fill, args=(log,))  # pytest reports an exception in it
        thread.start()
        thread.join()
        with pytest.raises(HarnessError, match=f"history.jsonl: cannot be written: {_TOO_LARGE}"):
            log.wait("an event", HarnessFailed, deadline_s=30, abort=failures.check)
    told = len(history.read(tmp_path / "history.jsonl"))  # no line is cut off
    assert 1 < told < len(log)
    log.append("harness", HarnessFailed(reason="there is room, but nobody knows"))
    assert len(history.read(tmp_path / "history.jsonl")) == told
    log.resume()
    log.append("harness", HarnessFailed(reason="the end"))
    log.close()
    assert [each.kind for each in history.read(tmp_path / "history.jsonl")][told:] == ["harness-error"]


def test_a_history_that_cannot_even_begin_ends_the_run(tmp_path: Path) -> None:
    failures = Failures()
    with files_of_at_most(10):
        log = History(tmp_path / "history.jsonl")
    log.when_lost(failures.end)
    with pytest.raises(HarnessError, match=_TOO_LARGE):
        failures.check()
    assert log.events().first(HistoryBegins) is not None
    log.close()


def test_what_a_process_prints_is_read_on_although_it_cannot_be_kept(tmp_path: Path) -> None:
    """The process prints more than a pipe holds, and would wait for ever if nobody read it."""
    (tmp_path / "prints.py").write_text(
        "from onceproof.workloads.processes.child import Child\nChild.begin()\n"
        "for _ in range(1_000):\n    print('x' * 1_000, flush=True)\n"
    )
    ended, codes = threading.Event(), []

    def on_exit(_child: Child, code: int) -> None:
        codes.append(code)
        ended.set()

    where = f"{tmp_path}:{Path(__file__).resolve().parents[2]}"
    with files_of_at_most(10_000):
        child = Child(
            "prints",
            {},
            folder=tmp_path / "processes",
            name="prints.1",
            environment={"PYTHONPATH": where, "PYTHONDONTWRITEBYTECODE": "1"},
            on_event=lambda _: None,
            on_exit=on_exit,
        )
        try:
            assert ended.wait(60)
        finally:
            child.kill()
    assert codes == [0]
    assert child.log.stat().st_size <= 10_000


# A whole run


class FullRun(Run):
    """A run that ends while it works, because an event could not be written."""

    def work(self) -> None:
        fill(self.history)
        self.workers.failures.check()


class FailedRun(Run):
    """A run that ends with an error of the disk while it works."""

    def work(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def cluster(folder: Path) -> Cluster:
    """A cluster that a run can be made for, and that has nothing to heal."""
    folder.mkdir()
    return cast(
        Cluster,
        SimpleNamespace(
            folder=folder,
            spec=SimpleNamespace(version="4.3.1"),
            heal=lambda: None,
            take_wire_out=lambda: None,
            take_database_out=lambda: None,
            admin=SimpleNamespace(topics=set, delete_topics=lambda topics: None),
        ),
    )


def made(kind: type[Run], tmp_path: Path, runs: Path | None = None) -> Run:
    return kind(
        parse(_SCENARIO, where="test"),
        seed=1,
        cluster=cluster(tmp_path / "cluster"),
        runs=runs or tmp_path / "runs",
        progress=Progress(quiet=True),
    )


def ends_as_it_must(run: Run, told: Results, says: str) -> None:
    """The verdict, and the files of the run: whole, and in agreement with each other."""
    assert told.headline == "unknown: harness-error"
    assert says in told.reasons[0].says
    assert results.read(run.folder / "results.json") == told
    manifest.check_results(run.folder)
    last = history.read(run.folder / "history.jsonl")[-1]
    assert isinstance(last, HarnessFailed) and says in last.reason
    assert (run.folder / "report.html").exists()
    assert not (run.folder / "reserve").exists()


def test_a_run_whose_history_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = made(FullRun, tmp_path)
    assert (run.folder / "reserve").stat().st_size > 200_000
    size, free = (run.folder / "history.jsonl").stat().st_size + _FEW_BYTES, Room.release

    def release(room: Room) -> None:
        free(room)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    monkeypatch.setattr(Room, "release", release)
    with files_of_at_most(size):
        told = run.all()
    ends_as_it_must(run, told, f"history.jsonl: cannot be written: {_TOO_LARGE}")


@pytest.mark.parametrize("name", ["traceback.txt", "phases.json"])
def test_a_run_whose_other_files_cannot_be_written(tmp_path: Path, name: str) -> None:
    run = made(FailedRun, tmp_path)
    (run.folder / name).mkdir()
    ends_as_it_must(run, run.all(), "OSError: [Errno 28] No space left on device")


def test_a_run_whose_results_cannot_be_written_ends_with_its_verdict(tmp_path: Path) -> None:
    run = made(FailedRun, tmp_path)
    (run.folder / "results.json").mkdir()
    assert run.all().headline == "unknown: harness-error"


def test_a_run_that_lost_events_is_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last events of a run may be lost when nobody waits for anything any more."""
    from onceproof.verifiers.collect import collect

    run = made(Run, tmp_path)
    run.cluster.collect_logs = lambda *_, **__: None  # type: ignore[method-assign]
    monkeypatch.setattr(collect, "collect", lambda *_, **__: fill(run.history))
    size = (run.folder / "history.jsonl").stat().st_size + _FEW_BYTES
    with files_of_at_most(size), pytest.raises(HarnessError, match=_TOO_LARGE):
        run.collect()
    run.close()


def test_a_disk_without_any_room_is_refused(tmp_path: Path) -> None:
    with files_of_at_most(1_000), pytest.raises(HarnessError, match=f"no room for the files of a run: {_TOO_LARGE}"):
        made(Run, tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", disk], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("a file system cannot be mounted here")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)  # at once, although a test that failed left a file open


def _no_room_left(disk: Path) -> None:
    with suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1_000))


@pytest.mark.parametrize("kind", [FullRun, FailedRun])
def test_a_run_on_a_small_disk(small_disk: Path, tmp_path: Path, kind: type[Run]) -> None:
    run = made(kind, tmp_path, runs=small_disk)
    _no_room_left(small_disk)
    told = run.all()
    ends_as_it_must(run, told, "No space left on device")


# A verdict


def test_a_verdict_that_cannot_be_written(
    spark: SparkSession,
    good_run: GoodRun,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = good_run.write(tmp_path / "run")
    assert main.main(["verify", str(folder)]) == commands.AS_EXPECTED
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    write = Results.write

    def on_a_full_disk(judged: Results, path: Path) -> None:
        with files_of_at_most(1_000):
            write(judged, path)

    monkeypatch.setattr(Results, "write", on_a_full_disk)
    capsys.readouterr()
    assert main.main(["verify", str(folder)]) == commands.FAILED
    told = capsys.readouterr()
    assert told.out == f"run: unknown: harness-error: [Errno 27] {_TOO_LARGE}\n"
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    assert json.loads(before["results.json"])["verdict"] == "valid"
