"""Run an instance of an application: start its command, report its process, and end all that it started.

The command runs in a session of its own. What it prints is in the log of this process. The command is killed with all
processes that it started when the harness ends, whatever state they are in: this process notices the end of its input,
and the kernel kills the command if this process is killed.

    spawned    the number of the command's process group
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading

from onceproof.harness.base import host
from onceproof.harness.context.process import EXIT_WORKLOAD
from onceproof.workloads.processes.child import Child

_KILL_DEADLINE_S = 10.0


class Supervisor:
    """One instance, and the process that watches it."""

    def __init__(self, child: Child) -> None:
        self._child, self._config = child, child.config
        host.adopt_orphans()
        self._process = subprocess.Popen(
            host.ending_with_parent(self._config["command"]),
            env={**os.environ, **self._config["env"]},
            cwd=self._config["folder"],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def run(self) -> int:
        """Return the exit status of this process after the command has ended.

        It is 0 if the command was asked to end, and EXIT_WORKLOAD if it ended by itself. If the command was killed,
        this process kills itself, so that it ends in the same way.
        """
        self._child.emit("spawned", group=self._process.pid)
        self._child.emit("ready", client="")
        threading.Thread(target=self._stop, name="stop", daemon=True).start()
        code = self._process.wait()
        self._kill()
        if self._child.stopping.is_set():
            return 0
        if code == -signal.SIGKILL:
            os.kill(os.getpid(), signal.SIGKILL)
        return EXIT_WORKLOAD

    def _stop(self) -> None:
        """Wait for the command `stop`, or for the end of the harness; end the command, and kill it if it does not."""
        self._child.stopping.wait()
        if self._child.alone.is_set():  # the harness has died
            self._kill()
            return
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)  # a stopped process does not see SIGTERM before it continues
        try:
            self._process.wait(self._config["stop_s"])
        except subprocess.TimeoutExpired:
            self._kill()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _kill(self) -> None:
        """Kill what the command has started, in its own group or not."""
        self._signal(signal.SIGKILL)
        host.kill_descendants(_KILL_DEADLINE_S)


def main() -> None:
    """Run the instance that the harness's configuration describes."""
    sys.exit(Supervisor(Child.begin(outlives=True)).run())


if __name__ == "__main__":
    main()
