"""What `clean --all` removes: only what setup recorded and what is onceproof's own, said line by line."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from onceproof.cli import commands, main
from tests.unit.test_package import stubs

_DPKG = """for last; do :; done; case "$last" in docker.io|containerd) printf 'ii ' ;; esac"""
_APT = """
echo "$*" >>"$0.log"
[ "$1" != --simulate ] || printf 'Remv docker.io [26]\\nRemv %s [1]\\n' "${EXTRA:-containerd}"
"""
_DOCKER = """
echo "$*" >>"$0.log"
case "$*" in
    "image ls"*) echo onceproof/wire:1 onceproof/jre:17 ;;
    ps*) echo ${OTHERS:-} ;;
esac
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with what setup recorded, on a machine whose docker and apt-get only write a log."""
    folder = tmp_path / "home"
    (folder / "jars").mkdir(parents=True)
    (folder / "jars" / "a.jar").touch()
    (folder / "failed" / "onceproof-01-ab").mkdir(parents=True)
    (tmp_path / "added.sources").touch()
    (folder / "installed").write_text(
        f"package docker.io\npackage containerd\npackage gone\nfile {tmp_path / 'added.sources'}\nimage jre@sha256:1\n"
    )
    monkeypatch.setenv("ONCEPROOF_HOME", str(folder))
    programs = {"dpkg-query": _DPKG, "apt-get": _APT, "docker": _DOCKER}
    monkeypatch.setenv("PATH", stubs(tmp_path / "bin", **programs))
    return folder


def say_all(capsys: pytest.CaptureFixture[str], *, dry_run: bool) -> list[str]:
    from onceproof.cli import uninstall

    uninstall.remove(print, dry_run=dry_run)
    return capsys.readouterr().out.splitlines()


def test_a_dry_run_says_what_would_be_removed(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["clean", "--all", "--dry-run"]) == commands.AS_EXPECTED
    assert capsys.readouterr().out.splitlines() == [
        "would remove image onceproof/jre:17",
        "would remove image onceproof/wire:1",
        "would remove image jre@sha256:1",
        "would remove packages docker.io, containerd",
        f"would remove {tmp_path / 'added.sources'}",
        f"would remove failed, installed, jars in {home}",
    ]
    assert (home / "jars" / "a.jar").exists() and (tmp_path / "added.sources").exists()
    assert (tmp_path / "bin" / "apt-get.log").read_text() == "--simulate remove docker.io containerd\n"
    assert "image rm" not in (tmp_path / "bin" / "docker.log").read_text()


def test_it_removes_what_was_recorded(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    says = say_all(capsys, dry_run=False)
    assert says[3:] == [
        "removing packages docker.io, containerd",
        f"removing {tmp_path / 'added.sources'}",
        f"removing failed, installed, jars in {home}",
    ]
    assert not home.exists() and not (tmp_path / "added.sources").exists()
    assert (tmp_path / "bin" / "apt-get.log").read_text().splitlines()[1:] == ["--yes remove docker.io containerd"]
    removed = [line for line in (tmp_path / "bin" / "docker.log").read_text().splitlines() if "image rm" in line]
    assert removed == ["image rm onceproof/jre:17", "image rm onceproof/wire:1", "image rm jre@sha256:1"]


def test_a_package_that_others_need_is_kept(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EXTRA", "someones-tool")
    says = say_all(capsys, dry_run=False)
    assert "kept: packages, because someones-tool, which setup did not install, needs one of them" in says
    assert "--yes" not in (tmp_path / "bin" / "apt-get.log").read_text()


def test_an_engine_with_containers_of_others_is_kept(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTHERS", "database")
    says = say_all(capsys, dry_run=False)
    assert "kept: packages and engine, because the engine has containers of others: database" in says
    assert not (tmp_path / "bin" / "apt-get.log").exists()


def test_files_of_others_in_the_home_are_kept(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "thesis.txt").touch()
    assert f"kept: {home}, because thesis.txt is not of onceproof" in say_all(capsys, dry_run=False)
    assert [each.name for each in home.iterdir()] == ["thesis.txt"]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is called dockerd."""
    program = tmp_path / "dockerd"
    shutil.copy(shutil.which("sleep") or "", program)
    process = subprocess.Popen([program, "60"])
    yield process
    process.kill()
    process.wait(10)


def test_it_ends_the_engine_that_setup_started_and_no_other_process(
    home: Path, engine: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    with (home / "installed").open("a") as file:
        file.write(f"engine {engine.pid}\nengine {os.getpid()}\n")
    says = say_all(capsys, dry_run=True)
    assert [line for line in says if "engine that" in line] == [
        f"would remove the Docker engine that setup started (process {engine.pid})"
    ]
    assert engine.poll() is None


def test_a_record_that_setup_did_not_write(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "installed").write_text("package docker.io\nengine one\n")
    assert main.main(["clean", "--all", "--dry-run"]) == commands.FAILED
    assert "installed: line 2: allowed: package NAME, file PATH" in capsys.readouterr().err
    assert (home / "jars" / "a.jar").exists()
