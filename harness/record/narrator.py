"""Tells the transactions of workers from their clients' requests, in the words in which workers tell their own.

The journal has what a client sent and what it was told (`harness/context/journal.py`). From that follow the events
`begin`, `invoke`, `outcome` and `assigned` of a history:

    AddPartitionsToTxn, AddOffsetsToTxn, a transactional Produce     begin, if no transaction of the id is open
    TxnOffsetCommit                                                  the offsets that the transaction read up to
    Produce and its response                                         the outputs, with their offsets
    EndTxn                                                           invoke, if it is to commit
    InitProducerId, of a client that starts anew                     outcome of an open transaction, as for a process
                                                                     that has ended
    the response of EndTxn                                           outcome: ok, fail (an abort), or info (an error)
    a response of these with an error that a client must report      error (`record/refusals.py`)
    the response of SyncGroup or ConsumerGroupHeartbeat              assigned

Of an application without transactions, each OffsetCommit that succeeded and moved an offset is told as a transaction
that was committed.

A client repeats an EndTxn of which it got no answer, or a retriable error; that is the same transaction, which has gone
on from the phase at which the first one waits. A transaction whose EndTxn was never answered has no outcome before its
client begins the next one; it is `info` then. What cannot be seen is what a worker polled: a transaction's inputs begin
where the previous one of the same process ended.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from onceproof.harness.record.assignments import assigned
from onceproof.harness.record.refusals import refusals

_SYNC_GROUP, _CONSUMER_GROUP_HEARTBEAT = 14, 68
_PRODUCE, _OFFSET_COMMIT, _OFFSET_FETCH = 0, 8, 9
_INIT_PRODUCER_ID, _ADD_PARTITIONS, _ADD_OFFSETS, _END_TXN, _TXN_OFFSET_COMMIT = 22, 24, 25, 26, 28
# COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS
_RETRIABLE = (14, 15, 16, 51)
# Errors with which a coordinator refuses offsets before it appends them: OFFSET_METADATA_TOO_LARGE,
# COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS,
# TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE,
# CONCURRENT_TRANSACTIONS, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, FENCED_INSTANCE_ID, PRODUCER_FENCED,
# FENCED_MEMBER_EPOCH, STALE_MEMBER_EPOCH, TRANSACTION_ABORTABLE
_NOT_APPENDED = (12, 14, 16, 22, 25, 27, 29, 30, 47, 48, 51, 53, 82, 90, 110, 113, 120)
_NONE = 0
Emit = Callable[[int, dict[str, Any]], None]
Place = tuple[str, int]
Owner = tuple[int, int, int]
_BATCH = ("producerId", "producerEpoch", "topic", "partition", "baseSequence")


@dataclass
class _Transaction:
    """A transaction of a transactional id, as far as it was seen."""

    worker: int
    incarnation: int
    number: int
    positions: dict[int, int] = field(default_factory=dict)
    sent: float | None = None  # when it sent offsets last
    waiting: Counter[tuple[Any, ...]] = field(default_factory=Counter)  # offsets that were sent and not refused
    outputs: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    acknowledged: set[tuple[Any, ...]] = field(default_factory=set)
    invoked: bool = False
    committed: bool = False
    ended: bool = False
    stops: list[dict[str, Any]] = field(default_factory=list)

    @property
    def owner(self) -> Owner:
        """What owns its batches and offsets: worker, incarnation, number."""
        return self.worker, self.incarnation, self.number


@dataclass
class _Process:
    """A process: a worker's incarnation, and what was told of it so far."""

    worker: int
    incarnation: int
    events: int = 0
    connections: set[tuple[str, int]] = field(default_factory=set)
    ended: bool = False
    open: dict[str, _Transaction] = field(default_factory=dict)
    read_to: dict[int, int] = field(default_factory=dict)


class Narrator:
    """Follows the requests of all workers of a run. `emit` is called with a worker and an event without its source.

    `read` maps a worker to the topic that it reads. Requests and responses are taken in the order of their times.

    `batches` maps each place of a batch that was sent (producer id, epoch, topic, partition, base sequence) to the CRCs
    that were sent there, each with the transaction (worker, incarnation, number) that sent it first: a client gives a
    sequence number again if the broker refused the batch. `positions` maps what was sent as a committed offset
    (producer id, epoch, partition, offset) to the transactions that sent it and were not refused, in their order.
    `members` maps a worker to its member ids in its group, and `transactional_ids` to the id of its last transaction.
    """

    def __init__(self, *, read: Callable[[int], str], emit: Emit, transactional: bool = True) -> None:
        self._read, self._emit, self._transactional = read, emit, transactional
        self._processes: dict[int, _Process] = {}  # the latest one of each worker
        self._all: dict[tuple[int, int], _Process] = {}
        self.batches: dict[tuple[Any, ...], dict[int | None, Owner]] = {}
        self.positions: dict[tuple[Any, ...], list[Owner]] = {}
        self.members: dict[int, set[str]] = {}
        self.transactional_ids: dict[int, str] = {}
        self._of_connection: dict[tuple[str, int], _Process] = {}
        self._numbers: dict[int, int] = {}

    def started(self, worker: int, incarnation: int) -> None:
        """Note that a process of a worker was started: connections that are opened from now on are its own."""
        self._processes[worker] = self._all[worker, incarnation] = _Process(worker, incarnation)

    def ended(self, worker: int, incarnation: int, at: float) -> None:
        """Note that a process of a worker has ended.

        What it had sent before may still be read. So its open transactions end when its connections are closed: one
        whose commit it had asked for, without an answer, is `info`; any other one was never to be committed, and is
        `fail`.
        """
        process = self._all[worker, incarnation]
        process.ended = True
        self._gone(process, at)

    def closed(self, event: Mapping[str, Any]) -> None:
        """Note that no further request is read from a connection. `event` is the request proxy's `closed`."""
        connection = event["link"], event["connection"]
        if process := self._of_connection.get(connection):
            process.connections.discard(connection)
            self._gone(process, event["at"])

    def closed_all(self) -> bool:
        """Return whether all connections of the processes that have ended are closed."""
        return not any(each.ended and each.connections for each in self._all.values())

    def finish(self, at: float) -> None:
        """Tell the open transactions of processes that have ended, but whose connections are not closed, as `info`."""
        for process in self._all.values():
            for each in process.open.values() if process.ended else ():
                if not each.ended:
                    self._end(process, each, at, "info")

    def _gone(self, process: _Process, at: float) -> None:
        if process.ended and not process.connections:
            for each in process.open.values():
                self._given_up(process, each, at)

    def stopped(self, worker: int, event: Mapping[str, Any]) -> None:
        """Tell that a request waits at a phase of its transaction, or has been delivered after that, as a worker does.

        `event` is the request proxy's `stopped` or `went-on`.
        """
        process = self._processes[worker]
        at = {"phase": event["phase"], "fault": event["rule"]}
        if event["event"] == "went-on":
            self._tell(process, event["at"], "went-on", **at)
            return
        for each in process.open.values():
            if each.number == event["transaction"]:
                each.stops.append(at)
        self._tell(process, event["at"], "at-phase", **at, count=event["count"], transaction=event["transaction"])

    def asked(self, row: Mapping[str, Any], body: Mapping[str, Any]) -> "_Transaction | None":
        """Take a request: a row of the table `requests`, with its body. Returns the transaction to which it belongs."""
        connection = row["link"], row["connection"]
        process = self._of_connection.get(connection)
        if process is None:
            process = self._of_connection[connection] = self._processes[row["worker"]]
            process.connections.add(connection)
        if row["api"] in (_SYNC_GROUP, _CONSUMER_GROUP_HEARTBEAT):
            self.members.setdefault(process.worker, set()).add(body.get("memberId", ""))
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
        for refusal in refusals(row["api"], response):
            number = None if transaction is None else transaction.number
            self._tell(process, row["answered"], "error", transaction=number, **refusal)
        if row["api"] == _OFFSET_FETCH:
            self._fetched(process, response)
        elif row["api"] in (_SYNC_GROUP, _CONSUMER_GROUP_HEARTBEAT):
            self._assigned(process, response, row["answered"])
        elif row["api"] == _OFFSET_COMMIT and not self._transactional:
            self._committed(process, body, response, row["answered"])
        elif transaction is None:
            return
        elif row["api"] == _PRODUCE:
            _acknowledged(transaction, body, response)
        elif row["api"] == _TXN_OFFSET_COMMIT:
            self._offsets_answered(transaction, body, response)
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
            begun = self._begun(process, name, at)
            self._note(begun, api, body, at)
            return begun
        current = process.open.get(name)
        if api == _INIT_PRODUCER_ID and current is not None and not body.get("keepPreparedTxn"):
            self._given_up(process, current, at)
            del process.open[name]
        if api != _END_TXN:
            return None
        if current is not None and not current.invoked:
            current.invoked, current.committed = True, body["committed"]
            if current.committed:
                whole = _whole(process, current)
                self._tell(process, at, "invoke", **whole, outputs=dict(current.outputs), sent=current.sent)
        elif current is not None:
            for stop in current.stops:
                self._tell(process, at, "went-on", **stop)
            current.stops.clear()
        return current

    def _begun(self, process: _Process, name: str, at: float) -> _Transaction:
        """Return the open transaction of a transactional id; begin one if there is none."""
        current = process.open.get(name)
        if current is not None and not current.invoked:
            return current
        if current is not None and not current.ended:
            self._end(process, current, at, "info")
        self.transactional_ids[process.worker] = name
        number = self._numbers[process.worker] = self._numbers.get(process.worker, 0) + 1
        begun = process.open[name] = _Transaction(process.worker, process.incarnation, number)
        self._tell(process, at, "begin", transaction=number)
        return begun

    def _note(self, transaction: _Transaction, api: int, body: Mapping[str, Any], at: float) -> None:
        """Note to which transaction the batches of a Produce, or the offsets of a TxnOffsetCommit, belong."""
        if api == _PRODUCE:
            for batch in body.get("batches", ()):
                self.batches.setdefault(_place(batch), {}).setdefault(batch.get("crc"), transaction.owner)
        elif api == _TXN_OFFSET_COMMIT:
            for each in self._read_by(transaction.worker, body):
                sent, transaction.sent = _sent(body, each), round(at, 6)
                transaction.waiting[sent] += 1
                known = self.positions.setdefault(sent, [])
                if transaction.owner not in known:
                    known.append(transaction.owner)

    def _read_by(self, worker: int, body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield what a request or response has of each partition of the topic that a worker reads."""
        for topic in body.get("topics", ()):
            if topic.get("name") == self._read(worker):
                yield from topic["partitions"]

    def _offsets_answered(self, transaction: _Transaction, asked: Mapping[str, Any], told: Mapping[str, Any]) -> None:
        """Note which offsets a transaction has committed. It does not own those that were refused each time."""
        codes = {each["partitionIndex"]: each["errorCode"] for each in self._read_by(transaction.worker, told)}
        for each in self._read_by(transaction.worker, asked):
            sent, code = _sent(asked, each), codes.get(each["partitionIndex"], _NONE)
            if code == _NONE:
                transaction.positions[each["partitionIndex"]] = each["committedOffset"]
            elif code in _NOT_APPENDED:
                transaction.waiting[sent] -= 1
                if not transaction.waiting[sent]:
                    self.positions[sent].remove(transaction.owner)

    def _fetched(self, process: _Process, told: Mapping[str, Any]) -> None:
        for group in told.get("groups", [told]):
            for each in self._read_by(process.worker, group):
                process.read_to[each["partitionIndex"]] = max(0, each["committedOffset"])

    def _assigned(self, process: _Process, told: Mapping[str, Any], at: float) -> None:
        """Tell which partitions of its input a member has been assigned, if the response says so."""
        assignment = told.get("assignment")
        if told.get("errorCode", _NONE) != _NONE or not assignment:
            return
        if mine := sorted(assigned(assignment).get(self._read(process.worker), ())):
            self._tell(process, at, "assigned", partitions=mine)

    def _committed(self, process: _Process, asked: Mapping[str, Any], told: Mapping[str, Any], at: float) -> None:
        """Tell that offsets of the input were committed outside of transactions, if the response says so.

        A client that commits at fixed times also commits offsets that have not moved. That tells of no input.
        """
        answers = list(self._read_by(process.worker, told))
        if not answers or any(each["errorCode"] != _NONE for each in answers):
            return
        positions = {each["partitionIndex"]: each["committedOffset"] for each in self._read_by(process.worker, asked)}
        if all(process.read_to.get(partition, 0) == position for partition, position in positions.items()):
            return
        number = self._numbers[process.worker] = self._numbers.get(process.worker, 0) + 1
        done = _Transaction(process.worker, process.incarnation, number, positions=positions)
        self._tell(process, at, "begin", transaction=number)
        self._end(process, done, at, "ok")

    def _given_up(self, process: _Process, transaction: _Transaction, at: float) -> None:
        """Tell how a transaction ended that its client will not end, unless that is told already."""
        if not transaction.ended:
            self._end(process, transaction, at, "info" if transaction.committed else "fail")

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
    """Add the outputs of a Produce that was acknowledged with their offsets.

    A batch that is sent again, because its acknowledgement was lost, is acknowledged again, with the same offset.
    """
    sent = {(each["topic"], each["partition"]): each for each in asked.get("batches", ())}
    for topic in told.get("responses", ()):
        for each in topic.get("partitionResponses", ()):
            place: Place = topic.get("name", ""), each["index"]
            first, count = each["baseOffset"], sent[place]["records"] if place in sent else 0
            if each["errorCode"] == _NONE and first >= 0 and count:
                batch = _place(sent[place])
                if batch in transaction.acknowledged:
                    continue
                transaction.acknowledged.add(batch)
                name = f"{place[0]}/{place[1]}"
                known = transaction.outputs.get(name, (0, first, first))
                last = max(known[2], first + count - 1)
                transaction.outputs[name] = known[0] + count, min(known[1], first), last


def _place(batch: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return where a batch is to be in the log: its producer id, epoch, topic, partition and base sequence."""
    return tuple(batch.get(name) for name in _BATCH)


def _sent(asked: Mapping[str, Any], each: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a TxnOffsetCommit sends for a partition, as the offsets' log has it."""
    return asked.get("producerId"), asked.get("producerEpoch"), each["partitionIndex"], each["committedOffset"]


def _whole(process: _Process, transaction: _Transaction) -> dict[str, Any]:
    """Return what the events `invoke` and `outcome` say of a transaction."""
    sources = {str(p): (process.read_to.get(p, 0), position) for p, position in sorted(transaction.positions.items())}
    records = sum(position - first for first, position in sources.values())
    return {"transaction": transaction.number, "sources": sources, "records": records}
