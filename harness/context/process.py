"""A child process of a run: configuration in a JSON file, events as JSON lines on stdout, commands on stdin.

A child asks the kernel to kill it when the thread that started it ends (PR_SET_PDEATHSIG), because a process stopped by
SIGSTOP does not notice that its pipes are closed. So the starting thread must outlive the child, as `Workers` ensures.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

# The exit status of a worker after a fatal error of its client. It is not a crash: the next incarnation takes over.
EXIT_FATAL = 17
EventSink = Callable[[dict[str, Any]], None]


class Child:
    """A child process that runs the Python module `module`.

    `folder` receives `<name>.json`, the configuration, and `<name>.stderr`. `environment` adds environment variables.
    `on_event` is called with each event, and `on_exit` once with the exit code, in a separate thread.
    """

    def __init__(
        self,
        module: str,
        config: Mapping[str, Any],
        *,
        folder: Path,
        name: str,
        environment: Mapping[str, str] | None = None,
        on_event: EventSink,
        on_exit: Callable[["Child", int], None],
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.json"
        path.write_text(json.dumps({**config, "parent": os.getpid()}, indent=1))
        self.name = name
        self.stderr = folder / f"{name}.stderr"
        with self.stderr.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **(environment or {})},
            )
        self._on_event, self._on_exit = on_event, on_exit
        self._reader = threading.Thread(target=self._read, name=f"reads {name}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def send(self, command: str, **fields: Any) -> None:
        """Send a command; nothing happens if the process has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"command": command, **fields}).encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens if the process has ended."""
        if self.running:
            self._process.send_signal(number)

    def wait(self, timeout_s: float) -> bool:
        """Return whether the process ended within `timeout_s` seconds; if so, its events have been read."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        self._reader.join(5)
        return True

    def kill(self) -> None:
        """Send SIGKILL, which also ends a stopped process, and wait up to ten seconds for the end."""
        self.signal(signal.SIGKILL)
        self.wait(10)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.endswith(b"\n"):
                break  # the incomplete last line of a process that was killed
            self._on_event(_event(line))
        code = self._process.wait()
        self._process.stdout.close()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._on_exit(self, code)


def _event(line: bytes) -> dict[str, Any]:
    """The object that a line holds. A line that holds none becomes an event of an unknown kind, which is refused."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        event = None
    return event if isinstance(event, dict) else {"event": line[:60].decode(errors="replace")}
