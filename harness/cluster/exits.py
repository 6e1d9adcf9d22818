"""Watches for containers of a cluster that exit although nothing in the run stopped them.

    with planned.down("broker2"): …         exits of broker2 are planned from here to planned.end("broker2")
    exits = Exits(client, "op-3", planned, on_exit=note, on_blind=fail)

A broker that dies by itself, or by somebody else's hand, takes part in no fault of the plan. A run that does not notice
would blame the pipeline for it, or be `valid` under failures that nobody recorded.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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

    @contextmanager
    def down(self, node: str) -> Iterator[None]:
        """Stop a node in the block; it is down on purpose until `end`, or until now if the block raises an error."""
        self.begin(node)
        try:
            yield
        except BaseException:
            self.end(node)
            raise

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
    """A thread that calls `on_exit` with each exit that is not planned, from its creation until `close`.

    `on_blind` is called with the reason if the thread ends earlier.
    """

    def __init__(
        self,
        client: Any,
        name: str,
        planned: Planned,
        on_exit: Callable[[Exit], None],
        on_blind: Callable[[str], None],
    ) -> None:
        self._planned, self._on_exit, self._on_blind = planned, on_exit, on_blind
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
        says = "the engine ended its events"
        try:
            for event in self._events:
                told = event["Actor"]["Attributes"]
                if _SERVICE not in told:
                    continue  # no node, but an instance of an application
                node, code, at = told[_SERVICE], int(told.get("exitCode", -1)), event["timeNano"] / 1e9
                if not self._closed and not self._planned.includes(node, at):
                    self._on_exit(Exit(node, code))
        except Exception as error:  # of the stream, also when it is closed while it is read
            says = f"{type(error).__name__}: {error}"
        if not self._closed:
            self._on_blind(f"exits of containers were not watched any more: {says}"[:300])
