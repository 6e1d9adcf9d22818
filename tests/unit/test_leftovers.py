"""What `clean` removes of killed processes, and what it leaves alone because a running process uses it."""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import docker
import pytest
from filelock import FileLock

from onceproof.cli import commands, main
from onceproof.harness.base import work


class _Engine:
    """An engine without containers and networks."""

    def __init__(self) -> None:
        self.containers = self.networks = self

    def list(self, **_filters: object) -> list[object]:
        return []

    def close(self) -> None:
        pass


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home, on a machine whose engine has nothing, and whose folder for temporary files is next to the home."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("ONCEPROOF_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(docker, "from_env", lambda **_: _Engine())
    return tmp_path / "home"


def made(*paths: Path) -> list[Path]:
    """Make folders, files, and lock files, by the endings of their names."""
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in (".lock", ".log", ".jar"):
            path.touch()
        else:
            path.mkdir()
    return list(paths)


def leftovers(home: Path, pid: int) -> list[Path]:
    """Everything that a process with this id may leave."""
    return made(
        home / "clusters" / "onceproof-01-ab.lock",
        home / "failed" / "onceproof-02-cd",
        home / "jars" / ".kafka-4.3.1.lock",
        home / "jars" / f"onceproof-{pid}-a1b2c3d4",
        home / "clients" / ".confluent-kafka-2.6.1",
        home / "clients" / ".confluent-kafka-2.6.1.lock",
        home / "spark" / str(pid),
        home.parent / "tmp" / f"onceproof-{pid}-a1b2c3d4",
    )


@pytest.fixture
def dead() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait(10)
    return process.pid


def test_what_killed_processes_left_is_removed(home: Path, dead: int, capsys: pytest.CaptureFixture[str]) -> None:
    left = leftovers(home, dead)
    (home / "failed" / "onceproof-02-cd" / "broker1.log").touch()
    old = home / "jars" / "tmpa1b2c3d4"
    old.mkdir()
    os.utime(old, (time.time() - 7200,) * 2)
    kept = made(home / "jars" / "x.jar", home / "jars" / ".ivy", home / "jars" / "tmpnew", home / "clients" / "c-1")
    assert main.main(["clean"]) == commands.AS_EXPECTED
    told = capsys.readouterr().out
    assert [path for path in (*left, old) if path.exists() or f"removing {path}\n" not in told] == []
    assert "9 files, folders, processes, containers and networks removed\n" in told
    assert all(path.exists() for path in kept)
    assert main.main(["clean"]) == commands.AS_EXPECTED
    assert capsys.readouterr().out == "there was nothing to remove\n"


def test_a_dry_run_says_what_would_be_removed(home: Path, dead: int, capsys: pytest.CaptureFixture[str]) -> None:
    left = [*leftovers(home, dead), home / "clusters" / "onceproof-03-ef"]
    left[-1].mkdir()
    assert main.main(["clean", "--dry-run"]) == commands.AS_EXPECTED
    told = capsys.readouterr().out.splitlines()
    assert sorted(told[:-1]) == sorted(f"would remove {path}" for path in left[:-1])
    assert told[-1] == "would remove the cluster onceproof-03-ef with its processes, containers and networks"
    assert all(path.exists() for path in left)


def test_a_dry_run_where_there_is_nothing_makes_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["clean", "--dry-run"]) == commands.AS_EXPECTED
    assert capsys.readouterr().out == "there is nothing to remove\n"
    assert not home.exists()


def test_what_a_running_process_uses_is_kept(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    used = leftovers(home, os.getpid())
    locks = [path for path in used if path.suffix == ".lock"]
    with ExitStack() as held:
        for lock in (*locks, home / "clusters" / "onceproof-02-cd.lock"):
            held.enter_context(FileLock(lock))
        assert main.main(["clean"]) == commands.AS_EXPECTED
        assert all(path.exists() for path in used)
    assert capsys.readouterr().out == "there was nothing to remove\n"


def test_no_lock_of_a_cluster_is_removed_while_one_starts(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [lock] = made(home / "clusters" / "onceproof-01-ab.lock")
    with FileLock(home.parent / "tmp" / f"onceproof-{os.getuid()}-addresses.lock"):
        assert main.main(["clean"]) == commands.AS_EXPECTED
    assert lock.exists()


def test_folders_of_others_in_tmp_are_kept(home: Path, dead: int) -> None:
    others = made(*(home.parent / "tmp" / name for name in ("onceproof-checkout", "onceproof-1", f"x-{dead}-a1b2c3d4")))
    link = home.parent / "tmp" / f"onceproof-{dead}-a1b2c3d4"
    link.symlink_to(others[0])
    assert main.main(["clean"]) == commands.AS_EXPECTED
    assert link.is_symlink() and all(path.exists() for path in others)


def test_the_folder_of_a_killed_process_is_abandoned(tmp_path: Path) -> None:
    code = "import os, sys, pathlib; from onceproof.harness.base import work\n"
    code += "folder = work.folder(pathlib.Path(sys.argv[1])); print(folder.name, flush=True); os.kill(os.getpid(), 9)"
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    with work.folder(tmp_path) as own:
        assert Path(own).is_dir()
        assert list(work.abandoned(tmp_path)) == [Path(killed.stdout.strip())]
