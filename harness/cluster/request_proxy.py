"""The client of the request proxy (compose/wire), which acts on single Kafka requests and reports each match.

wire = Wire(port, on_event)
wire.rule("3-hold-request", links=["lane1->broker2", …], api="EndTxn", action="hold")
wire.release("3-hold-request")
wire.report(["lane1->broker2", …])      on_event is also called with these links' requests and responses
wire.stop("4-kill-worker", lane="lane1", phase="before-commit", transaction=8)
"""

import json
import queue
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, BinaryIO, Literal

from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.record.apis import KEYS, Api

Action = Literal["hold", "delay", "drop-response", "close"]
_UP_DEADLINE_S = 20
_CONNECTED_DEADLINE_S = 5.0
_ANSWER_DEADLINE_S = 15.0


class Wire:
    """A connection to the request proxy.

    `port` is the proxy's control port on 127.0.0.1. `on_event` is called with each line of the proxy's journal, in a
    separate thread. The constructor raises DeadlineError when the proxy does not start; the methods raise HarnessError
    when it refuses a command or does not answer within 15 seconds.
    """

    def __init__(self, port: int, on_event: Callable[[dict[str, Any]], None]) -> None:
        what = "the request proxy to answer"
        self._socket, self._lines = until(what, lambda: _connected(port), deadline_s=_UP_DEADLINE_S)
        self._on_event = on_event
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, name="request proxy reader", daemon=True)
        self._reader.start()

    def rule(
        self,
        name: str,
        *,
        links: Iterable[str],
        action: Action,
        api: Api,
        client: str = "",
        requests: int = 1,
        delay_ms: int = 0,
    ) -> None:
        """Apply an action to the next requests of an API on these links.

        The rule matches requests whose client id begins with `client`. `requests` is the number of requests it applies
        to, or 0 for all until `release`. `delay_ms` is the delay of the action `delay`.
        """
        self._do(
            do="rule",
            rule=name,
            links=sorted(links),
            action=action,
            api=KEYS[api],
            client=client,
            requests=requests,
            delay_ms=delay_ms,
        )

    def stop(self, name: str, *, lane: str, phase: str, transaction: int) -> None:
        """Let the clients of a lane wait at a phase of the first transaction from this number on that reaches it.

        `lane` is what the names of its links begin with, and transactions are counted from 1 over all of its clients.
        What waits is reported as `stopped`, and as `went-on` after `go` of each of its stops, unless its client has
        gone by then: then it is not delivered.
        """
        self._do(do="stop", rule=name, lane=lane, phase=phase, transaction=transaction)

    def go(self, name: str) -> None:
        """Deliver what waits at the stop of this name, and end the stop. This call is idempotent."""
        self._do(do="go", rule=name)

    def release(self, name: str) -> None:
        """Deliver what a rule holds, and end the rule. This call is idempotent."""
        self._do(do="release", rule=name)

    def report(self, links: Iterable[str]) -> None:
        """Report the requests on these links, on connections that are opened from now on, and their responses.

        They are those of the APIs that the module `journal` describes.
        """
        self._do(do="report", links=sorted(links))

    def settle(self) -> None:
        """Return when `on_event` has been called with everything that the proxy has seen so far."""
        self._do(do="hello")

    def close(self) -> None:
        """Close the connection; the proxy keeps its rules and held requests. This call is idempotent."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join(_CONNECTED_DEADLINE_S)
        self._lines.close()
        self._socket.close()

    def _do(self, **command: Any) -> None:
        with self._lock:
            try:
                self._socket.sendall(json.dumps(command).encode() + b"\n")
                answer = self._answers.get(timeout=_ANSWER_DEADLINE_S)
            except (OSError, queue.Empty) as error:
                raise HarnessError(f"the request proxy does not answer {command}: {error!r}") from None
        if answer["event"] != "done":
            raise HarnessError(f"the request proxy refused {command}: {answer['why']}")

    def _read(self) -> None:
        try:
            for line in self._lines:
                event = json.loads(line)
                if event["event"] in ("done", "refused"):
                    self._answers.put(event)
                else:
                    self._on_event(event)
        except (OSError, ValueError):
            pass  # the connection was closed


def _connected(port: int) -> tuple[socket.socket, BinaryIO]:
    """Connect and wait for an answer, since Docker accepts connections for a container that has not started yet."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=_CONNECTED_DEADLINE_S)
    lines = connection.makefile("rb")
    try:
        connection.sendall(b'{"do": "hello"}\n')
        if not lines.readline():
            raise ConnectionError("closed")
    except OSError:
        lines.close()
        connection.close()
        raise
    connection.settimeout(None)
    return connection, lines
