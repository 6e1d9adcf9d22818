"""A graph of instances that keeps its state in snapshots by markers, as Chandy and Lamport describe them.

    input 0, 3 → instance 0 ⇄ instance 1 ← input 1, 4        each pair has a channel in each direction
                     ⇅  instance 2  ⇅                        an instance owns the keys with its number
                      ↑ input 2, 5

An instance reads its own input partitions, and sends each record to the owner of its key, who adds it to its state.
Nothing is transactional. Instance 0 records its state from time to time, and sends a marker on each of its channels. An
instance does the same when it receives the first marker of a snapshot. The records that it receives on a channel after
that, and before the marker of that channel, were in transit, and belong to the snapshot. A snapshot is whole when every
instance has stored its part.

A process that starts begins a new attempt, and every instance goes back to the last whole snapshot: its state, its
offsets in the input, and the records in transit. Messages and parts of earlier attempts are ignored. So each input has
one effect on the state. The table TABLE has the state of the last whole snapshot.

BROKEN=without-channels leaves out the records in transit.

K. M. Chandy and L. Lamport, "Distributed Snapshots: Determining Global States of Distributed Systems" (ACM TOCS, 1985).
"""

import json
import os
import signal
import sqlite3
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

BROKEN = os.environ.get("BROKEN", "")
SOURCE, CHANNELS, TABLE = os.environ["SOURCE"], os.environ["CHANNELS"], os.environ["TABLE"]
ME, INSTANCES = int(os.environ["INSTANCE"]), int(os.environ["INSTANCES"])
OTHERS = [each for each in range(INSTANCES) if each != ME]
COMMON = {"bootstrap.servers": os.environ["BOOTSTRAP"]}
EVERY_S = 0.5
Row = tuple[int, str, int]
stopping = False


def stop(_signal: int, _frame: FrameType | None) -> None:
    global stopping
    stopping = True


class Store:
    """The snapshots, in a database that the instances share."""

    def __init__(self) -> None:
        file = os.environ["DATABASE"].removeprefix("jdbc:sqlite:")
        self._database = sqlite3.connect(file, timeout=20, isolation_level=None)
        with self._transaction() as run:
            run("CREATE TABLE IF NOT EXISTS attempts (attempt INTEGER)")
            run("CREATE TABLE IF NOT EXISTS parts (attempt INTEGER, snapshot INTEGER, instance INTEGER, part TEXT)")
            run(f'CREATE TABLE IF NOT EXISTS "{TABLE}" (number INTEGER, key TEXT, amount INTEGER)')

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield self._database.execute
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def begin_attempt(self) -> None:
        """Make every instance go back to the last whole snapshot."""
        with self._transaction() as run:
            run("INSERT INTO attempts SELECT coalesce(max(attempt), 0) + 1 FROM attempts")

    def attempt(self) -> int:
        return int(self._database.execute("SELECT max(attempt) FROM attempts").fetchone()[0])

    def restore(self) -> tuple[int, int, dict[str, Any]]:
        """Return the attempt, the number of the last whole snapshot (0 if there is none), and this instance's part."""
        with self._transaction() as run:
            [attempt] = run("SELECT max(attempt) FROM attempts").fetchone()
            for number, part in self._whole(run):
                return attempt, number, json.loads(part)
            return attempt, 0, {"state": [], "positions": {}, "channels": []}

    @staticmethod
    def _whole(run: Any) -> Iterator[tuple[int, str]]:
        sql = "SELECT max(snapshot) FROM (SELECT snapshot FROM parts GROUP BY attempt, snapshot HAVING count(*) = ?)"
        [number] = run(sql, (INSTANCES,)).fetchone()
        yield from run("SELECT snapshot, part FROM parts WHERE snapshot = ? AND instance = ?", (number, ME))

    def add(self, attempt: int, snapshot: int, part: dict[str, Any]) -> None:
        """Add this instance's part; the last one makes the snapshot whole, and the table shows it then."""
        with self._transaction() as run:
            if run("SELECT max(attempt) FROM attempts").fetchone() != (attempt,):
                return  # an instance has started meanwhile
            run("INSERT INTO parts VALUES (?, ?, ?, ?)", (attempt, snapshot, ME, json.dumps(part)))
            found = run("SELECT part FROM parts WHERE attempt = ? AND snapshot = ?", (attempt, snapshot)).fetchall()
            if len(found) < INSTANCES:
                return
            run("DELETE FROM parts WHERE attempt <> ? OR snapshot <> ?", (attempt, snapshot))
            run(f'DELETE FROM "{TABLE}"')
            parts = [json.loads(part) for [part] in found]
            rows = [row for each in parts for row in each["state"] + each["channels"]]
            self._database.executemany(f'INSERT INTO "{TABLE}" VALUES (?, ?, ?)', rows)

    def is_whole(self, snapshot: int) -> bool:
        """Return whether a snapshot of this attempt, or a later one, is whole."""
        sql = "SELECT snapshot FROM parts GROUP BY attempt, snapshot HAVING count(*) = ?"
        return any(number >= snapshot for [number] in self._database.execute(sql, (INSTANCES,)))


class Node:
    """One instance of the graph."""

    def __init__(self) -> None:
        self._store = Store()
        self._producer = Producer({**COMMON, "enable.idempotence": True, "linger.ms": 5})
        self._consumer = Consumer(
            {**COMMON, "group.id": os.environ["GROUP"], "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        )
        _make_channels()
        count = len(self._consumer.list_topics(SOURCE, 30).topics[SOURCE].partitions)
        self._partitions = [each for each in range(count) if each % INSTANCES == ME]
        self._due = 0.0
        self._open: set[int] = set()  # the channels whose records belong to the snapshot that is being made
        self._part: dict[str, Any] | None = None
        self._unconfirmed: tuple[int, dict[int, int]] | None = None

    def run(self) -> None:
        self._store.begin_attempt()
        self._restore(started=True)
        sys.stdout.write("restored\n")
        sys.stdout.flush()
        while not stopping:
            if self._store.attempt() != self._attempt:
                self._restore()
            attempt = self._attempt
            for message in self._consumer.consume(200, 0.05):
                if message.error() is not None:
                    continue
                if message.topic() == CHANNELS:
                    self._receive((message.partition() or 0) // INSTANCES, json.loads(message.value() or b""))
                elif attempt == self._attempt:  # otherwise it will be read again
                    self._read(message)
            self._producer.poll(0)
            self._confirm()
            if ME == 0 and self._part is None and self._unconfirmed is None and time.monotonic() > self._due:
                self._record(self._snapshot + 1)
        self._consumer.close()

    def _restore(self, *, started: bool = False) -> None:
        """Go back to the last whole snapshot."""
        self._attempt, self._snapshot, part = self._store.restore()
        self._part, self._unconfirmed, self._open = None, None, set()
        self._state: list[Row] = [*map(tuple, part["state"]), *map(tuple, part["channels"])]
        self._positions = {int(partition): offset for partition, offset in part["positions"].items()}
        places = [TopicPartition(SOURCE, each, self._positions.get(each, 0)) for each in self._partitions]
        if started:
            incoming = [TopicPartition(CHANNELS, each * INSTANCES + ME, 0) for each in OTHERS]
            self._consumer.assign([*places, *incoming])
            return
        for place in places:
            self._consumer.seek(place)

    def _read(self, message: Message) -> None:
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None and offset is not None and value is not None
        self._positions[partition] = offset + 1
        record = json.loads(value)
        row = record["number"], record["key"], record["amount"]
        owner = zlib.crc32(record["key"].encode()) % INSTANCES
        if owner == ME:
            self._state.append(row)
        else:
            self._send(owner, {"row": row})

    def _receive(self, channel: int, message: dict[str, Any]) -> None:
        if message["attempt"] > self._attempt:
            self._restore()
        if message["attempt"] < self._attempt:
            return
        if "row" in message:
            row = tuple(message["row"])
            self._state.append(row)
            if self._part is not None and channel in self._open and BROKEN != "without-channels":
                self._part["channels"].append(row)
            return
        if self._part is None:
            self._record(message["marker"])
        self._open.discard(channel)
        if not self._open and self._part is not None:
            self._store.add(self._attempt, self._snapshot, self._part)
            self._unconfirmed = self._snapshot, self._part["positions"]
            self._part = None

    def _record(self, snapshot: int) -> None:
        """Record the state of this instance, and tell the others."""
        self._snapshot, self._open = snapshot, {*OTHERS}
        self._part = {"state": [*self._state], "positions": {**self._positions}, "channels": []}
        for other in OTHERS:
            self._send(other, {"marker": snapshot})

    def _confirm(self) -> None:
        """When the snapshot is whole, commit the offsets that it has, so that others can see how far it is."""
        if self._unconfirmed is None or not self._store.is_whole(self._unconfirmed[0]):
            return
        offsets = [TopicPartition(SOURCE, *each) for each in self._unconfirmed[1].items()]
        self._unconfirmed, self._due = None, time.monotonic() + EVERY_S
        with suppress(KafkaException):  # the next snapshot has later ones
            if offsets:
                self._consumer.commit(offsets=offsets, asynchronous=False)

    def _send(self, other: int, content: dict[str, Any]) -> None:
        value = json.dumps({"attempt": self._attempt, **content}).encode()
        self._producer.produce(CHANNELS, value, partition=ME * INSTANCES + other, on_delivery=_delivered)


def _delivered(error: KafkaError | None, _message: Message) -> None:
    if error is not None:
        sys.stderr.write(f"a channel has lost a record: {error}\n")
        sys.stderr.flush()
        os._exit(1)  # the next process begins an attempt


def _make_channels() -> None:
    """Make the topic of the channels, with a partition for each: sender × instances + receiver."""
    topic = NewTopic(CHANNELS, num_partitions=INSTANCES**2, replication_factor=3)
    admin = AdminClient(COMMON)
    try:
        admin.create_topics([topic], operation_timeout=20)[CHANNELS].result(30)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    Node().run()
