"""What `onceproof doctor` finds on a machine, with programs that answer as those of other machines do."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from onceproof.cli import commands, doctor, main
from onceproof.harness.artifacts import java
from onceproof.harness.base import host
from onceproof.harness.base.deadlines import until
from tests.unit.test_package import stubs

_JAVA = "echo 'openjdk version \"21.0.2\" 2024-01-16' >&2"


def docker(info: dict[str, object], *, component: str = "Engine", compose: str = "2.26.1") -> str:
    """A program that answers as `docker` does; its daemon has no image."""
    return f"""case "$1" in
        info) echo '{json.dumps(info)}' ;;
        version) echo '{component}' ;;
        compose) echo '{compose}' ;;
        *) exit 1 ;;
    esac"""


def needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **programs: str) -> dict[str, doctor.Need]:
    """The needs by their first words, on a machine with these programs and an empty cache."""
    monkeypatch.setenv("PATH", stubs(tmp_path / "bin", **{"java": _JAVA, **programs}))
    monkeypatch.setenv("ONCEPROOF_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(doctor, "_present", lambda _tag: False)
    return {need.what.split(":")[0]: need for need in doctor.checks()}


def test_a_machine_with_all_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = {"ServerVersion": "26.1.5", "SecurityOptions": ["name=seccomp"], "MemTotal": 16 * 10**9}
    found = needs(tmp_path, monkeypatch, docker=docker(info))
    assert [name for name in found if found[name].ok and not name.startswith(("memory", "disk"))] == [
        "Docker engine 26.1.5",
        "platform",
        "Compose 2.26.1",
        "Java 21",
    ]
    assert [name for name in found if name.startswith("disk")] == ["disk of the cache", "disk of the current folder"]
    assert not found["jars kafka-4.3.1"].ok


@pytest.mark.parametrize(
    ("info", "component", "says"),
    [
        ({"SecurityOptions": ["name=rootless"]}, "Engine", "a rootless engine is not supported yet"),
        ({"SecurityOptions": ["name=rootless"]}, "Podman Engine", "Podman is not supported yet"),
        ({"OSType": "windows"}, "Engine", "containers of windows are not supported yet"),
    ],
)
def test_an_engine_that_is_not_supported_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, info: dict[str, object], component: str, says: str
) -> None:
    found = needs(tmp_path, monkeypatch, docker=docker(info, component=component))["platform"]
    assert not found.ok
    assert found.how.startswith(says)


def test_a_system_that_is_not_supported_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("PATH", stubs(tmp_path / "bin", uname="echo Darwin"))
    assert host.unsupported({}, []) == ["macOS is not supported yet: runs have been tried on Linux only"]
    assert main.main(["doctor"]) == commands.NOT_AS_EXPECTED
    assert "MISSING  platform: macOS is not supported yet" in capsys.readouterr().out
    for options in ([], ["--no-install"], ["--dry-run"]):
        done = subprocess.run(
            [sys.executable, "-m", "onceproof.cli.main", "setup", *options],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == commands.BAD_INPUT
        assert done.stderr == "setup: missing: Linux: Darwin is not supported yet\n"


def test_too_little_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_DISK_BYTES", 10**18)
    found = needs(tmp_path, monkeypatch, docker=docker({"ServerVersion": "26.1.5", "MemTotal": 10**9}))
    assert not found["disk of the cache"].ok
    assert "a run needs 1000000000 GB below " in found["disk of the cache"].how
    assert not found["memory"].ok
    assert found["memory"].what.endswith("1.0 GB in the engine")


@pytest.mark.parametrize(("compose", "ok"), [("1.29.2", False), ("v2.0.1", True), ("5.0.0", True), ("", False)])
def test_the_version_of_compose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compose: str, ok: bool) -> None:
    assert needs(tmp_path, monkeypatch, docker=docker({}, compose=compose))[f"Compose {compose}"].ok is ok


@pytest.mark.parametrize(
    ("told", "ok"), [("16.0.2", False), ("17.0.1", True), ("22.0.1", True), ("23", False), ("25", False)]
)
def test_the_java_that_run_allows_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, ok: bool
) -> None:
    says = f"echo 'openjdk version \"{told}\" 2025-09-16' >&2"
    need = needs(tmp_path, monkeypatch, docker=docker({}), java=says)[f"Java {told[:2]}"]
    assert need.ok is ok
    wrong = f"{tmp_path}/bin/java is Java {told[:2]} (on PATH); allowed: Java 17 to 22: `onceproof setup` installs it"
    assert need.how.startswith("; allowed: " if ok else wrong)
    done = setup(tmp_path)
    assert done.returncode == commands.BAD_INPUT
    assert done.stderr.startswith("setup: missing: Java 17 to 22 (") is not ok, done.stderr


def setup(folder: Path) -> subprocess.CompletedProcess[str]:
    """What `onceproof setup --no-install` says to a user who may not install packages."""
    (folder / "bin" / "id").write_text("#!/bin/sh\necho 1000\n")
    (folder / "bin" / "id").chmod(0o755)
    command = [sys.executable, "-m", "onceproof.cli.main", "setup", "--no-install"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_setup_and_run_allow_the_same_java() -> None:
    script = (Path(java.__file__).parents[2] / "ci" / "java.sh").read_text()
    assert f"\noldest={java.OLDEST} newest={java.NEWEST}\n" in script


def test_a_java_home_without_java_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    need = needs(tmp_path, monkeypatch, docker=docker({}))["Java 21"]
    assert not need.ok
    program = tmp_path / "none" / "bin" / "java"
    assert need.how.startswith(f"{program} cannot be started: No such file or directory (JAVA_HOME, for Spark); ")


def test_no_java_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _program: None)
    need = needs(tmp_path, monkeypatch, docker=docker({}))["Java "]
    assert not need.ok
    assert need.how.startswith("there is no program `java` on PATH; allowed: Java 17 to 22: ")


def test_root_in_a_rootless_engine_is_this_user() -> None:
    assert host.container_user({"SecurityOptions": ["name=seccomp", "name=rootless"]}) == "0:0"
    assert host.container_user({"SecurityOptions": None}) == f"{os.getuid()}:{os.getgid()}"


_PARENT = """
import subprocess, time
from onceproof.harness.base import host
subprocess.Popen(host.ending_with_parent(["sh", "-c", "echo $$; exec sleep 60"]))
time.sleep(60)
"""
_WATCHER = """
import subprocess, sys, time
start = "import os, psutil, sys, time; sys.platform = 'other'; "  # psutil itself knows no such platform
child = start + "from onceproof.harness.base import host; host.end_with_parent()"
subprocess.Popen([sys.executable, "-c", child + "; print(os.getpid(), flush=True); time.sleep(60)"])
time.sleep(60)
"""


@pytest.mark.parametrize("program", [_PARENT, _WATCHER], ids=["by the kernel", "by a thread"])
def test_a_process_ends_with_its_parent(program: str) -> None:
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert psutil.pid_exists(pid)
        parent.kill()
    until("the child to end", lambda: _gone(pid), deadline_s=20)


def _gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
