"""One process of ours: configuration as JSON in a file, events as JSON lines on its stdout, commands on its stdin.

The child asks the kernel to be killed when the thread that made it dies (PR_SET_PDEATHSIG), since a process stopped by
SIGSTOP never sees its pipes close. So children must be made by a thread that outlives them; `Workers` sees to that.
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

# Of a worker whose client can do no more: the next incarnation takes over, and nobody calls it a crash.
EXIT_FATAL = 17
EventSink = Callable[[dict[str, Any]], None]


class Child:
    """A running child. `environment`: variables beside ours. `on_event` is called, in a thread of its own, with each
    event; `on_exit` once, at the end."""

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
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def send(self, command: str, **fields: Any) -> None:
        """Send a command; one that is dead does not mind."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"command": command, **fields}).encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass

    def signal(self, number: signal.Signals) -> None:
        if self.running:
            self._process.send_signal(number)

    def wait(self, timeout_s: float) -> bool:
        """Whether it ended within that time, its last event read."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        self._reader.join(5)
        return True

    def kill(self) -> None:
        """SIGKILL, which ends a stopped process too."""
        self.signal(signal.SIGKILL)
        self.wait(10)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                event = json.loads(line)
            except json.JSONDecodeError:
                continue  # the last line of a process that was killed while it wrote
            self._on_event(event)
        code = self._process.wait()
        self._process.stdout.close()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._on_exit(self, code)
