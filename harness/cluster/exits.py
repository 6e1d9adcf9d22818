"""Watches for containers of a cluster that exit although nothing in the run stopped them.

    planned.begin("broker2"); planned.end("broker2")    an exit of broker2 in between is planned
    exits = Exits(client, "op-3", planned, on_exit=note)

A broker that dies by itself, or by somebody else's hand, takes part in no fault of the plan. A run that does not notice
would blame the pipeline for it, or be `valid` under failures that nobody recorded.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from onceproof.harness.cluster.containers import LABEL

_SERVICE = "com.docker.compose.service"


class Planned:
    """The times in which nodes are down on purpose. It is safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spans: dict[str, list[list[float]]] = defaultdict(list)

    def begin(self, node: str) -> None:
        """Record that a node is stopped on purpose from now on."""
        with self._lock:
            spans = self._spans[node]
            if not spans or spans[-1][1] < float("inf"):
                spans.append([time.time(), float("inf")])

    def end(self, node: str) -> None:
        """Record that a node was started again. This call is idempotent."""
        with self._lock:
            for span in self._spans[node][-1:]:
                span[1] = min(span[1], time.time())

    def includes(self, node: str, at: float) -> bool:
        """Return whether a node was down on purpose at a time (Unix time in seconds)."""
        with self._lock:
            return any(begin <= at <= end for begin, end in self._spans[node])


@dataclass(frozen=True)
class Exit:
    """An exit of a container: the node, and its exit status."""

    node: str
    code: int


class Exits:
    """A thread that calls `on_exit` with each exit that is not planned, from its creation until `close`."""

    def __init__(self, client: Any, name: str, planned: Planned, on_exit: Callable[[Exit], None]) -> None:
        self._planned, self._on_exit = planned, on_exit
        self._events = client.events(
            since=time.time(), filters={"label": f"{LABEL}={name}", "event": "die"}, decode=True
        )
        self._closed = False
        self._thread = threading.Thread(target=self._watch, name=f"exits of {name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread. This call is idempotent."""
        self._closed = True
        with suppress(Exception):  # the engine may be gone
            self._events.close()
        self._thread.join(5)

    def _watch(self) -> None:
        with suppress(Exception):  # raised when the stream is closed while it is read
            for event in self._events:
                told = event["Actor"]["Attributes"]
                node, code = told[_SERVICE], int(told.get("exitCode", -1))
                if not self._closed and not self._planned.includes(node, event["timeNano"] / 1e9):
                    self._on_exit(Exit(node, code))
