"""A child process of a run: configuration and then commands as JSON lines on stdin, events as JSON lines on a pipe.

The pipe of the events is not stdout, since a transform or a client may print. What the process prints, on stdout and on
stderr, is written to a file.

The configuration contains the settings of the clients, and so passwords. It reaches the process through the pipe only;
the run's folder gets a copy without them (`harness/base/redaction.py`), and likewise what the process prints.

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
from typing import Any, BinaryIO

from onceproof.harness.base import redaction
from onceproof.harness.base.redaction import Redaction
from onceproof.harness.model import registry

# The exit status of a worker after a fatal error of its client. It is not a crash: the next incarnation takes over.
EXIT_FATAL = 17
# The exit status of a worker whose workload raised an exception, or returned an output that cannot be sent.
EXIT_WORKLOAD = 18
_TEXT_MAX = 200
EventSink = Callable[[dict[str, Any]], None]


class Child:
    """A child process that runs the Python module `module`.

    `folder` receives `<name>.json`, the configuration without secrets, and `<name>.log`, what the process printed.
    `told_to_stop` is whether the command `stop` was sent. `environment` adds variables. `on_start` is called with the
    process id before the process has its configuration, so before it does anything; `on_event` with each event, and
    `on_exit` once with the exit code, in a separate thread. The settings under `client_config` of the configuration are
    those that may contain secrets.
    """

    def __init__(
        self,
        module: str,
        config: Mapping[str, Any],
        *,
        folder: Path,
        name: str,
        environment: Mapping[str, str] | None = None,
        on_start: Callable[[int], None] = lambda _: None,
        on_event: EventSink,
        on_exit: Callable[["Child", int], None],
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        settings = config.get("client_config", {})
        copy = {**config, "client_config": redaction.shown(settings)}
        (folder / f"{name}.json").write_text(json.dumps(copy, indent=1))
        self.name = name
        self.log = folder / f"{name}.log"
        self.told_to_stop = False
        log = self.log.open("wb", buffering=0)
        events, write_events = os.pipe()
        self._events = os.fdopen(events, "rb")
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(write_events,),
                env={**os.environ, registry.TRIED: "1", **(environment or {})},
            )
        finally:
            os.close(write_events)
        on_start(self.pid)
        self._write({**config, "parent": os.getpid(), "events": write_events})
        self._redaction = Redaction(settings)
        self._printed = threading.Thread(target=self._copy_printed, args=(log,), name=f"log of {name}", daemon=True)
        self._printed.start()
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
        self.told_to_stop |= command == "stop"
        self._write({"command": command, **fields})

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

    def _write(self, line: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(line).encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass

    def _copy_printed(self, log: BinaryIO) -> None:
        """Copy what the process prints into its log. On a full disk it is still read, so that the process goes on."""
        assert self._process.stdout is not None
        with self._process.stdout as lines, log as file:
            for line in lines:
                with contextlib.suppress(OSError):
                    file.write(self._redaction.data(line))

    def _read(self) -> None:
        for line in self._events:
            if not line.endswith(b"\n"):
                break  # the incomplete last line of a process that was killed
            event = _event(line)
            if isinstance(text := event.get("text"), str):
                event["text"] = self._redaction.text(text)[:_TEXT_MAX]  # cut last, lest a part of a secret is left
            self._on_event(event)
        code = self._process.wait()
        self._printed.join(5)
        self._events.close()
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
