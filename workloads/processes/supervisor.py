"""Run an instance of an application: start its command, report its process, and end all that it started.

The command runs in a session of its own, or in a container. What it prints is in the log of this process. The command
is killed with all processes that it started when the harness ends, whatever state they are in: this process notices the
end of its input, and the kernel kills the command if this process is killed.

    spawned    the number of the command's process group, or the name of its container
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import docker

from onceproof.harness.base import host
from onceproof.harness.cluster import app_container
from onceproof.harness.cluster.app_container import AppContainer
from onceproof.harness.context.process import EXIT_WORKLOAD
from onceproof.workloads.processes.child import Child

_KILL_DEADLINE_S = 10.0


class _Instance(Protocol):
    """What runs the command."""

    @property
    def spawned(self) -> Mapping[str, Any]:
        """The fields of the event `spawned`."""
        ...

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Return the exit status, -9 if it was killed; None if it has not ended within `timeout_s` seconds."""
        ...

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens if it has ended."""
        ...

    def kill(self) -> None:
        """Kill it with all that it has started."""
        ...


class _Process:
    """A command in a session of its own."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        host.adopt_orphans()
        self._process = subprocess.Popen(
            host.ending_with_parent(config["command"]),
            env={**os.environ, **config["env"]},
            cwd=config["folder"],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.spawned: Mapping[str, Any] = {"group": self._process.pid}

    def wait(self, timeout_s: float | None = None) -> int | None:
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        host.kill_descendants(_KILL_DEADLINE_S)  # also those in groups of their own


class _Container:
    """A command in a container."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        about = config["container"]
        self._container = AppContainer(
            about["image"],
            config["command"],
            name=about["name"],
            env=config["env"],
            labelled=about["labels"],
            state=Path(about["state"]),
            reads=[Path(each) for each in about["reads"]],
        )
        self.spawned: Mapping[str, Any] = {"container": about["name"]}
        self._log = threading.Thread(
            target=self._container.copy_log, args=(sys.stdout.buffer,), name="log", daemon=True
        )
        self._log.start()

    def wait(self, timeout_s: float | None = None) -> int | None:
        code = self._container.wait(float("inf") if timeout_s is None else timeout_s)
        if code is not None:
            self._log.join(_KILL_DEADLINE_S)
        return -signal.SIGKILL if code == 128 + signal.SIGKILL else code

    def signal(self, number: signal.Signals) -> None:
        app_container.send(self._container.name, number)

    def kill(self) -> None:
        self._container.remove()


class Supervisor:
    """One instance, and the process that watches it."""

    def __init__(self, child: Child) -> None:
        self._child, self._config = child, child.config
        self._overdue = False  # whether this process has killed the command
        self._instance: _Instance = (_Container if self._config["container"] else _Process)(self._config)

    def run(self) -> int:
        """Return the exit status of this process after the command has ended.

        It is 0 if the command was asked to end, and EXIT_WORKLOAD if it ended by itself. If somebody else killed the
        command, this process kills itself, so that it ends in the same way.
        """
        self._child.emit("spawned", **self._instance.spawned)
        self._child.emit("ready", client="")
        threading.Thread(target=self._stop, name="stop", daemon=True).start()
        code = self._instance.wait()
        self._instance.kill()
        if code == -signal.SIGKILL and not self._overdue:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0 if self._child.stopping.is_set() else EXIT_WORKLOAD

    def _stop(self) -> None:
        """Wait for the command `stop`, or for the end of the harness; end the command, and kill it if it does not."""
        self._child.stopping.wait()
        if self._child.alone.is_set():  # the harness has died
            self._overdue = True
            self._instance.kill()
            return
        self._instance.signal(signal.SIGTERM)
        self._instance.signal(signal.SIGCONT)  # a stopped process does not see SIGTERM before it continues
        if self._instance.wait(self._config["stop_s"]) is None:
            self._overdue = True
            self._instance.kill()


def main() -> None:
    """Run the instance that the harness's configuration describes."""
    child = Child.begin(outlives=True)
    try:
        supervisor = Supervisor(child)
    except docker.errors.DockerException as error:
        sys.exit(f"the container was not started: {error}")
    sys.exit(supervisor.run())


if __name__ == "__main__":
    main()
