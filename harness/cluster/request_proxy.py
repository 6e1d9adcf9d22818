"""The wire proxy of a cluster, driven: rules about single requests, and a journal of what matched (compose/wire).

wire = Wire(port, on_event)
wire.rule("3-hold-request", links=["lane1->broker2", …], api="EndTxn", action="hold")
wire.release("3-hold-request")
"""

import json
import queue
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, BinaryIO, Literal

from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import HarnessError

Action = Literal["hold", "delay", "drop-response", "close"]
Api = Literal[
    "Produce",
    "Fetch",
    "OffsetCommit",
    "FindCoordinator",
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "EndTxn",
    "WriteTxnMarkers",
    "TxnOffsetCommit",
]
_KEYS: Mapping[Api, int] = {
    "Produce": 0,
    "Fetch": 1,
    "OffsetCommit": 8,
    "FindCoordinator": 10,
    "InitProducerId": 22,
    "AddPartitionsToTxn": 24,
    "AddOffsetsToTxn": 25,
    "EndTxn": 26,
    "WriteTxnMarkers": 27,
    "TxnOffsetCommit": 28,
}
_UP_DEADLINE_S = 20
_ANSWER_DEADLINE_S = 5.0


class Wire:
    """A connection to it. `on_event` is called, in a thread of its own, with each line of the journal.

    Methods raise HarnessError when it does not answer in five seconds.
    """

    def __init__(self, port: int, on_event: Callable[[dict[str, Any]], None]) -> None:
        what = "the wire proxy to answer"
        self._socket, self._lines = until(what, lambda: _connected(port), deadline_s=_UP_DEADLINE_S)
        self._on_event = on_event
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, name="reads the wire proxy", daemon=True)
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
        """From now on, do this with so many requests (0: all until `release`) of that api key on these links, from
        clients whose id begins so."""
        self._do(
            do="rule",
            rule=name,
            links=sorted(links),
            action=action,
            api=_KEYS[api],
            client=client,
            requests=requests,
            delay_ms=delay_ms,
        )

    def release(self, name: str) -> None:
        """Deliver what the rule holds, and end it. Twice is harmless."""
        self._do(do="release", rule=name)

    def close(self) -> None:
        """The proxy forgets nothing by it: what it holds it goes on holding. Twice is harmless."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join(_ANSWER_DEADLINE_S)
        self._lines.close()
        self._socket.close()

    def _do(self, **command: Any) -> None:
        with self._lock:
            try:
                self._socket.sendall(json.dumps(command).encode() + b"\n")
                answer = self._answers.get(timeout=_ANSWER_DEADLINE_S)
            except (OSError, queue.Empty) as error:
                raise HarnessError(f"the wire proxy does not answer to {command}: {error!r}") from None
        if answer["event"] != "done":
            raise HarnessError(f"the wire proxy refused {command}: {answer['why']}")

    def _read(self) -> None:
        try:
            for line in self._lines:
                event = json.loads(line)
                if event["event"] in ("done", "refused"):
                    self._answers.put(event)
                else:
                    self._on_event(event)
        except (OSError, ValueError):
            pass  # closed


def _connected(port: int) -> tuple[socket.socket, BinaryIO]:
    """The engine takes connections for a container that is not up yet: only an answer says that it is."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=_ANSWER_DEADLINE_S)
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
