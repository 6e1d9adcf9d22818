"""The side of a child process in its conversation with the harness: configuration, events and commands.

    child = Child.begin()          reads the configuration, the first line of stdin
    child.emit("ready")            writes an event to the harness, one line of JSON
    child.stop_at("begun", 20)     waits for the command `go` if the plan has a fault at this phase and count

Commands are the next lines of JSON on stdin: `begin`, `go` (with `fault` and, optionally, `abort`) and `stop`. The
process is killed by the kernel when the harness dies. Events have a pipe of their own, so a transform may print.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from onceproof.harness.base import host
from onceproof.harness.base.deadlines import overdue

_PHASE_DEADLINE_S = 600


class Child:
    """The process itself, as the harness sees it.

    - `config`: the configuration.
    - `begun`: set by the command `begin`.
    - `stopping`: set by the command `stop`, or when stdin is closed.
    - `alone`: set when stdin is closed, as it is when the harness has ended.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.begun = threading.Event()
        self.stopping = threading.Event()
        self.alone = threading.Event()
        self._go: dict[str, threading.Event] = {}
        self._abort: set[str] = set()
        self._write = threading.Lock()
        self._emitted = 0
        os.set_inheritable(config["events"], False)  # a process that the child starts must not keep the pipe open
        self._events = os.fdopen(config["events"], "w")
        self._stops = [dict(stop) for stop in config.get("stops", ())]
        threading.Thread(target=self._read_commands, name="commands", daemon=True).start()

    @classmethod
    def begin(cls, *, outlives: bool = False) -> "Child":
        """Read the configuration, and arrange for this process to be killed when the harness dies.

        A process that `outlives` the harness must end by itself when `alone` is set. Exits with status 1 when the
        harness has died already.
        """
        line = sys.stdin.readline()
        if not line.endswith("\n"):
            os._exit(1)
        config = json.loads(line)
        if not outlives:
            host.end_with_parent()
        if os.getppid() != config["parent"]:  # the harness died before that call
            os._exit(1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the harness handles Ctrl-C
        return cls(config)

    def emit(self, event: str, **fields: Any) -> None:
        """Write an event, with `n`, its number from 1, and `t`, the process's CLOCK_MONOTONIC in seconds.

        It is safe to use from several threads. The numbers show whether an event has been lost.
        """
        with self._write:
            self._emitted += 1
            head = {"event": event, "n": self._emitted, "t": round(time.monotonic(), 6)}
            line = json.dumps({**head, **fields}, separators=(",", ":"))
            self._events.write(line + "\n")
            self._events.flush()

    def stop_at(self, phase: str, count: int) -> bool:
        """Wait for the nemesis if the plan has a fault at this phase of transaction `count`.

        A stop at an earlier transaction that did not reach the phase applies to this one. The wait ends with the
        command `go` or `stop`, or after ten minutes. Returns whether the transaction is to be aborted.
        """
        abort = False
        for stop in [each for each in self._stops if each["phase"] == phase and each["count"] <= count]:
            self._stops.remove(stop)
            fault = stop["fault"]
            gate = self._go.setdefault(fault, threading.Event())
            self.emit("at-phase", phase=phase, count=stop["count"], transaction=count, fault=fault)
            gate.wait(_PHASE_DEADLINE_S)
            self.emit("went-on", phase=phase, fault=fault)
            abort |= fault in self._abort
        return abort

    def deadline(self, seconds: float, passed: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `passed`, in another thread, when the block takes longer than `seconds`.

        A client's call may never return, whatever time-out it was given (librdkafka #5456, #5511: sending offsets when
        the group's coordinator has died). So the deadline must not depend on the thread that waits.
        """
        return overdue(seconds, passed)

    def _read_commands(self) -> None:
        for line in sys.stdin:
            command = json.loads(line)
            if command["command"] == "go":
                if command.get("abort"):
                    self._abort.add(command["fault"])
                self._go.setdefault(command["fault"], threading.Event()).set()
            elif command["command"] == "begin":
                self.begun.set()
            elif command["command"] == "stop":
                self.stopping.set()
                for gate in self._go.values():
                    gate.set()
        self.alone.set()
        self.stopping.set()
