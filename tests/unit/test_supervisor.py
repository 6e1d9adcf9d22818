"""An instance of an application and all that it started end with its supervisor, and with the harness."""

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from onceproof.harness.base.deadlines import until
from onceproof.harness.context.process import EXIT_WORKLOAD, Child
from onceproof.workloads import processes

pytestmark = pytest.mark.xdist_group("supervisor")  # the tests look for processes of the whole machine

# A command with a child in its own session, one in another session, and one that is stopped.
_FAMILY = """
sleep 7101 &
setsid sleep 7102 &
sleep 7103 &
sleep 0.5
kill -STOP $!
exec sleep 7104
"""


class Instance:
    """A supervisor with its command."""

    def __init__(self, folder: Path, *command: str, stop_s: float = 1.0) -> None:
        self.events: list[dict[str, Any]] = []
        self.codes: list[int] = []
        about = {"command": list(command), "env": {"WORD": "from the scenario"}, "folder": str(folder)}
        config = {**about, "container": None, "stop_s": stop_s, "client_config": {}}
        self.child = Child(
            processes.SUPERVISOR,
            config,
            folder=folder,
            name="worker-0.1",
            on_event=self.events.append,
            on_exit=lambda _, code: self.codes.append(code),
        )

    def spawned(self) -> int:
        told = until("the command", lambda: [e for e in self.events if e["event"] == "spawned"], deadline_s=20)
        return int(told[0]["group"])

    def ended(self) -> int:
        return until("the end", lambda: self.codes, deadline_s=20)[0]

    def log(self) -> str:
        return self.child.log.read_text()


def sleeping() -> list[int]:
    """The processes of `_FAMILY` that are alive."""
    found = []
    for each in psutil.process_iter(["cmdline", "status"]):
        words = each.info["cmdline"] or []
        if words[:1] == ["sleep"] and words[1:] in (["7101"], ["7102"], ["7103"], ["7104"]):
            found.append(each.pid)
    return found


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    assert not sleeping()
    yield
    left = sleeping()
    for pid in left:
        psutil.Process(pid).kill()
    assert not left


def test_a_command_that_ends_by_itself(tmp_path: Path) -> None:
    one = Instance(tmp_path, "sh", "-c", 'echo "$WORD"; exit 3')
    assert one.ended() == EXIT_WORKLOAD
    assert one.log() == "from the scenario\n"


def test_a_command_that_is_asked_to_end(tmp_path: Path) -> None:
    ends = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(print('ends'))); signal.pause()"
    one = Instance(tmp_path, sys.executable, "-u", "-c", ends)
    one.spawned()
    time.sleep(0.5)
    one.child.send("stop")
    assert (one.ended(), one.log()) == (0, "ends\n")


def test_what_does_not_end_is_killed(tmp_path: Path) -> None:
    one = Instance(tmp_path, "sh", "-c", f"trap '' TERM\n{_FAMILY}")
    one.spawned()
    until("all processes", lambda: len(sleeping()) == 4, deadline_s=20)
    one.child.send("stop")
    assert one.ended() == 0
    assert not sleeping()


def test_a_command_that_is_killed(tmp_path: Path) -> None:
    one = Instance(tmp_path, "sh", "-c", _FAMILY)
    group = one.spawned()
    until("all processes", lambda: len(sleeping()) == 4, deadline_s=20)
    psutil.Process(group).kill()
    assert one.ended() == -signal.SIGKILL
    assert not sleeping()


def test_a_command_that_is_killed_while_it_ends(tmp_path: Path) -> None:
    one = Instance(tmp_path, "sh", "-c", f"trap '' TERM\n{_FAMILY}", stop_s=30.0)
    group = one.spawned()
    until("all processes", lambda: len(sleeping()) == 4, deadline_s=20)
    one.child.send("stop")
    time.sleep(0.5)
    psutil.Process(group).kill()
    assert one.ended() == -signal.SIGKILL


def test_the_harness_dies(tmp_path: Path) -> None:
    """Its end of the pipe is closed then, also if the command is stopped."""
    one = Instance(tmp_path, "sh", "-c", _FAMILY)
    group = one.spawned()
    until("all processes", lambda: len(sleeping()) == 4, deadline_s=20)
    psutil.Process(group).suspend()
    assert one.child._process.stdin is not None
    one.child._process.stdin.close()
    one.ended()
    assert not sleeping()
