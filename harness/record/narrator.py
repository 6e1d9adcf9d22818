"""Tells the transactions of workers from their clients' requests, in the words in which workers tell their own.

The journal has what a client sent and what it was told (`harness/context/journal.py`). From that follow the events
`begin`, `invoke` and `outcome` of a history:

    AddPartitionsToTxn, AddOffsetsToTxn, a transactional Produce     begin, if no transaction of the id is open
    TxnOffsetCommit                                                  the offsets that the transaction read up to
    Produce and its response                                         the outputs, with their offsets
    EndTxn                                                           invoke, if it is to commit
    the response of EndTxn                                           outcome: ok, fail (an abort), or info (an error)

A client repeats an EndTxn of which it got no answer, or a retriable error; that is the same transaction. A transaction
whose EndTxn was never answered has no outcome before its client begins the next one; it is `info` then. What cannot be
seen is what a worker polled: a transaction's inputs begin where the previous one of the same process ended.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_PRODUCE, _OFFSET_FETCH, _ADD_PARTITIONS, _ADD_OFFSETS, _END_TXN, _TXN_OFFSET_COMMIT = 0, 9, 24, 25, 26, 28
# COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS
_RETRIABLE = (14, 15, 16, 51)
_NONE = 0
Emit = Callable[[int, dict[str, Any]], None]
Place = tuple[str, int]


@dataclass
class _Transaction:
    """A transaction of a transactional id, as far as it was seen."""

    worker: int
    incarnation: int
    number: int
    positions: dict[int, int] = field(default_factory=dict)
    outputs: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    invoked: bool = False
    committed: bool = False
    ended: bool = False


@dataclass
class _Process:
    """A process: a worker's incarnation, and what was told of it so far."""

    worker: int
    incarnation: int
    events: int = 0
    open: dict[str, _Transaction] = field(default_factory=dict)
    read_to: dict[int, int] = field(default_factory=dict)


class Narrator:
    """Follows the requests of all workers of a run. `emit` is called with a worker and an event without its source.

    `read` maps a worker to the topic that it reads. Requests and responses are taken in the order of their times.
    """

    def __init__(self, *, read: Callable[[int], str], emit: Emit) -> None:
        self._read, self._emit = read, emit
        self._processes: dict[int, _Process] = {}
        self._of_connection: dict[tuple[str, int], _Process] = {}
        self._numbers: dict[int, int] = {}

    def started(self, worker: int, incarnation: int) -> None:
        """Note that a process of a worker was started: connections that are opened from now on are its own."""
        self._processes[worker] = _Process(worker, incarnation)

    def asked(self, row: Mapping[str, Any], body: Mapping[str, Any]) -> "_Transaction | None":
        """Take a request: a row of the table `requests`, with its body. Returns the transaction to which it belongs."""
        connection = row["link"], row["connection"]
        process = self._of_connection.get(connection)
        if process is None:
            process = self._of_connection[connection] = self._processes[row["worker"]]
        return self._request(process, row["api"], body, row["at"])

    def told(
        self,
        row: Mapping[str, Any],
        body: Mapping[str, Any],
        response: Mapping[str, Any],
        transaction: "_Transaction | None",
    ) -> None:
        """Take the response to a request, with the transaction that `asked` returned for it."""
        process = self._of_connection[row["link"], row["connection"]]
        if row["api"] == _OFFSET_FETCH:
            self._fetched(process, response)
        elif transaction is None:
            return
        elif row["api"] == _PRODUCE:
            _acknowledged(transaction, body, response)
        elif row["api"] == _TXN_OFFSET_COMMIT:
            self._positions(transaction, body)
        elif row["api"] == _END_TXN and not transaction.ended:
            code = response.get("errorCode", _NONE)
            if code == _NONE:
                self._end(process, transaction, row["answered"], "ok" if transaction.committed else "fail")
            elif code not in _RETRIABLE:
                self._end(process, transaction, row["answered"], "info")

    def _request(self, process: _Process, api: int, body: Mapping[str, Any], at: float) -> _Transaction | None:
        name = body.get("transactionalId") or body.get("v3AndBelowTransactionalId")
        if not name:
            return None
        if api in (_PRODUCE, _ADD_PARTITIONS, _ADD_OFFSETS, _TXN_OFFSET_COMMIT):
            return self._begun(process, name, at)
        if api != _END_TXN:
            return None
        current = process.open.get(name)
        if current is not None and not current.invoked:
            current.invoked, current.committed = True, body["committed"]
            if current.committed:
                self._tell(process, at, "invoke", **_whole(process, current), outputs=dict(current.outputs))
        return current

    def _begun(self, process: _Process, name: str, at: float) -> _Transaction:
        """Return the open transaction of a transactional id; begin one if there is none."""
        current = process.open.get(name)
        if current is not None and not current.invoked:
            return current
        if current is not None and not current.ended:
            self._end(process, current, at, "info")
        number = self._numbers[process.worker] = self._numbers.get(process.worker, 0) + 1
        begun = process.open[name] = _Transaction(process.worker, process.incarnation, number)
        self._tell(process, at, "begin", transaction=number)
        return begun

    def _positions(self, transaction: _Transaction, asked: Mapping[str, Any]) -> None:
        for topic in asked.get("topics", ()):
            if topic.get("name") == self._read(transaction.worker):
                for each in topic["partitions"]:
                    transaction.positions[each["partitionIndex"]] = each["committedOffset"]

    def _fetched(self, process: _Process, told: Mapping[str, Any]) -> None:
        for group in told.get("groups", [told]):
            for topic in group.get("topics", ()):
                if topic.get("name") == self._read(process.worker):
                    for each in topic["partitions"]:
                        process.read_to[each["partitionIndex"]] = max(0, each["committedOffset"])

    def _end(self, process: _Process, transaction: _Transaction, at: float, how: str) -> None:
        transaction.ended = True
        self._tell(process, at, "outcome", type=how, **_whole(process, transaction))
        if how == "ok":
            process.read_to |= transaction.positions

    def _tell(self, process: _Process, at: float, kind: str, **keys: Any) -> None:
        process.events += 1
        head = {"event": kind, "n": process.events, "t": round(at, 6), "incarnation": process.incarnation}
        self._emit(process.worker, {**head, **keys})


def _acknowledged(transaction: _Transaction, asked: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    """Add the outputs of a Produce that was acknowledged with their offsets."""
    sent = {(each["topic"], each["partition"]): each["records"] for each in asked.get("batches", ())}
    for topic in told.get("responses", ()):
        for each in topic.get("partitionResponses", ()):
            place: Place = topic.get("name", ""), each["index"]
            first, count = each["baseOffset"], sent.get(place, 0)
            if each["errorCode"] == _NONE and first >= 0 and count:
                name = f"{place[0]}/{place[1]}"
                known = transaction.outputs.get(name, (0, first, first))
                last = max(known[2], first + count - 1)
                transaction.outputs[name] = known[0] + count, min(known[1], first), last


def _whole(process: _Process, transaction: _Transaction) -> dict[str, Any]:
    """Return what the events `invoke` and `outcome` say of a transaction."""
    sources = {str(p): (process.read_to.get(p, 0), position) for p, position in sorted(transaction.positions.items())}
    records = sum(position - first for first, position in sources.values())
    return {"transaction": transaction.number, "sources": sources, "records": records}
