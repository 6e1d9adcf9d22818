"""The child's end of the pipe: configuration, commands, events, and dying with the harness.

child = Child.begin()          configuration from the file named on the command line
child.emit("ready")            a JSON line on stdout
child.stop_at("begun", 20)     waits for `go` when the plan armed this phase at this count
"""

import ctypes
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_PHASE_DEADLINE_S = 600


class Child:
    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.begun = threading.Event()
        self.stopping = threading.Event()
        self._go: dict[str, threading.Event] = {}
        self._abort: set[str] = set()
        self._write = threading.Lock()
        self._stops = [dict(stop) for stop in config.get("stops", ())]
        threading.Thread(target=self._read_commands, name="commands", daemon=True).start()

    @classmethod
    def begin(cls) -> "Child":
        config = json.loads(Path(sys.argv[1]).read_text())
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != config["parent"]:  # it died before the kernel knew
            os._exit(1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the harness's to handle
        return cls(config)

    def emit(self, event: str, **fields: Any) -> None:
        line = json.dumps({"event": event, "t": round(time.monotonic(), 6), **fields}, separators=(",", ":"))
        with self._write:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def stop_at(self, phase: str, count: int) -> bool:
        """Wait for the nemesis where the plan says so: at this phase of transaction `count`, or the next to reach it.

        The wait ends with `go`, with `stop`, or after ten minutes. True when the nemesis says to abort here.
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

    @contextmanager
    def deadline(self, seconds: float, passed: Callable[[], None]) -> Iterator[None]:
        """Call `passed`, in another thread, when the block takes longer than that.

        A client's call may never return, whatever time-out it was given (librdkafka #5456, #5511: sending offsets when
        the group's coordinator has died), so the deadline must not depend on the thread that waits.
        """
        timer = threading.Timer(seconds, passed)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

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
        self.stopping.set()
