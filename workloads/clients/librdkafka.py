"""The driver for librdkafka, through confluent-kafka.

Two things a pipeline on it must get right, and that are easy to get wrong:

- The group metadata that fences by generation (KIP-447) is taken when records are polled, not when offsets are sent:
  by then a background thread may have left the group, and offsets sent without a generation are not fenced.
- When a rebalance happens inside a poll, what that poll returned is thrown away and every partition is fetched again
  from its committed position: some of it may belong to somebody else now.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from harness.protocols import Source
from workloads.clients import Batch, ClientError

_CALL_TIMEOUT_S = 5.0
_POLL_TIMEOUT_S = 0.1
_PATIENCE_S = 60.0
HEADER = "onceproof"


class Librdkafka:
    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._input: str = config["input"]
        self._batch: int = config["transaction_records"]
        self._transactional: bool = config["transactional"]
        self._reset = OFFSET_END if config["auto_offset_reset"] == "latest" else OFFSET_BEGINNING
        self._classic = config["group_protocol"] == "classic"
        # Every retry ends: the broker has aborted by then, and what is still refused is refused for good.
        self._patience_s = config["transaction_timeout_ms"] / 1000 + _PATIENCE_S
        self._consumer = Consumer(_consumer_config(config))
        self._producer = Producer(_producer_config(config))
        self._rebalanced = False
        self._assigned: list[int] = []
        self._next: dict[int, int] = {}
        self._metadata: Any = None
        self._positions: list[TopicPartition] = []
        self._delivered: dict[str, list[int]] = {}
        self._failed: KafkaError | None = None

    def start(self) -> None:
        if self._transactional:
            self._retrying("init-transactions", lambda: self._producer.init_transactions(_CALL_TIMEOUT_S))
        self._consumer.subscribe(
            [self._input], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
        )

    def poll(self) -> Batch:
        self._rebalanced = False
        messages = self._consumer.consume(self._batch, timeout=_POLL_TIMEOUT_S)
        if self._rebalanced:
            self._next.clear()
            self.rewind()
            assigned, self._assigned = self._assigned, []
            return Batch(records=[], ranges={}, assigned=assigned)
        self._metadata = self._consumer.consumer_group_metadata()
        records: list[Source] = []
        ranges: dict[int, tuple[int, int]] = {}
        resets: list[dict[str, int]] = []
        for message in messages:
            error = message.error()
            if error is not None:
                if error.fatal():
                    raise _client_error("poll", error)
                continue
            partition, offset = message.partition(), message.offset()
            expected = self._next.get(partition)
            if expected is not None and expected != offset:
                resets.append({"partition": partition, "expected": expected, "found": offset})
            self._next[partition] = offset + 1
            ranges[partition] = (ranges.get(partition, (offset, 0))[0], offset + 1)
            records.append(
                Source(partition=partition, offset=offset, key=message.key() or b"", value=message.value() or b"")
            )
        return Batch(records=records, ranges=ranges, resets=resets)

    def begin(self) -> None:
        self._delivered, self._failed, self._positions = {}, None, []
        if self._transactional:
            self._call("begin", self._producer.begin_transaction)

    def send(self, topic: str, partition: int, key: bytes, value: bytes, provenance: bytes) -> None:
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                self._producer.produce(
                    topic, value, key, partition, on_delivery=self._on_delivery, headers=[(HEADER, provenance)]
                )
                return
            except BufferError:
                if time.monotonic() > deadline:
                    raise ClientError("produce", "_QUEUE_FULL", abortable=True, fatal=False) from None
                self._producer.poll(0.1)
            except KafkaException as error:
                raise _client_error("produce", error.args[0]) from None

    def flush(self) -> dict[str, list[int]]:
        left = self._producer.flush(self._patience_s)
        if self._failed is not None:
            raise _client_error("produce", self._failed)
        if left:
            raise ClientError("flush", "_TIMED_OUT", abortable=True, fatal=False, text=f"{left} records left")
        return self._delivered

    def send_offsets(self, ranges: Mapping[int, tuple[int, int]], metadata: str) -> None:
        self._positions = [
            TopicPartition(self._input, partition, following, metadata) for partition, (_, following) in ranges.items()
        ]
        if self._transactional:
            self._retrying(
                "send-offsets",
                lambda: self._producer.send_offsets_to_transaction(self._positions, self._metadata, _CALL_TIMEOUT_S),
            )

    def commit(self) -> None:
        if self._transactional:
            self._retrying("commit", lambda: self._producer.commit_transaction(_CALL_TIMEOUT_S))
        else:
            self._retrying("commit", lambda: self._consumer.commit(offsets=self._positions, asynchronous=False))

    def abort(self) -> None:
        if self._transactional:
            self._retrying("abort", lambda: self._producer.abort_transaction(_CALL_TIMEOUT_S))

    def assigned(self) -> list[int]:
        return [each.partition for each in self._consumer.assignment()]

    def read_all(self, topic: str, partition: int) -> Iterator[tuple[bytes, bytes]]:
        place = TopicPartition(topic, partition, OFFSET_BEGINNING)
        client = {key: self._config[key] for key in ("bootstrap", "client_config", "name", "incarnation")}
        ends: list[int] = []

        def high_watermark() -> None:
            admin = AdminClient(_common(client))
            told = admin.list_offsets(
                {TopicPartition(topic, partition): OffsetSpec.latest()}, request_timeout=_CALL_TIMEOUT_S,
                isolation_level=IsolationLevel.READ_UNCOMMITTED,
            )  # fmt: skip
            ends[:] = [each.result(_CALL_TIMEOUT_S).offset for each in told.values()]

        self._retrying("list-offsets", high_watermark)
        reader = Consumer({**_common(client), "group.id": f"{client['name']}-restores", "enable.partition.eof": True,
                           "isolation.level": "read_committed", "enable.auto.commit": False})  # fmt: skip
        try:
            reader.assign([place])
            yield from self._until(reader, ends[0])
        finally:
            reader.close()

    def _until(self, reader: Consumer, end: int) -> Iterator[tuple[bytes, bytes]]:
        """What a consumer reads until its position is `end`."""
        deadline = time.monotonic() + self._patience_s
        while end > 0:
            for message in reader.consume(1000, timeout=_POLL_TIMEOUT_S):
                error = message.error()
                if error is None:
                    yield message.key() or b"", message.value() or b""
                elif error.code() == KafkaError._PARTITION_EOF and message.offset() >= end:
                    return
            if time.monotonic() > deadline:
                says = f"offset {end} of the changelog not reached"
                raise ClientError("restore", "_TIMED_OUT", abortable=False, fatal=True, text=says)

    def rewind(self) -> None:
        assigned = self._consumer.assignment()
        if not assigned:
            return
        found: list[TopicPartition] = []

        def committed() -> None:
            found[:] = self._consumer.committed(assigned, timeout=_CALL_TIMEOUT_S)
            for each in found:
                if each.error is not None:
                    raise KafkaException(each.error)

        self._retrying("committed", committed)
        for each in found:
            each.offset = each.offset if each.offset >= 0 else self._reset
        self._next = {each.partition: each.offset for each in found if each.offset >= 0}
        if self._classic:
            self._call("seek", lambda: self._consumer.assign(found))
        else:
            self._call("seek", lambda: self._consumer.incremental_unassign(assigned))
            self._call("seek", lambda: self._consumer.incremental_assign(found))

    def close(self) -> None:
        self._call("close", self._consumer.close)

    def _on_assign(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """One poll may see several rebalances, and each may add to what is ours."""
        self._rebalanced = True
        self._assigned += [each.partition for each in partitions]

    def _on_revoke(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._rebalanced = True
        gone = {each.partition for each in partitions}
        self._assigned = [partition for partition in self._assigned if partition not in gone]

    def _on_delivery(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self._failed = self._failed or error
            return
        place = f"{message.topic()}/{message.partition()}"
        offset = message.offset()
        seen = self._delivered.get(place)
        if seen is None:
            self._delivered[place] = [1, offset, offset]
        elif offset < 0 or seen[1] < 0:
            # A batch that the broker had already (DUPLICATE_SEQUENCE_NUMBER) is acknowledged without its offset.
            self._delivered[place] = [seen[0] + 1, -1, -1]
        else:
            seen[0] += 1
            seen[2] = offset

    def _call(self, name: str, call: Callable[[], object]) -> None:
        try:
            call()
        except KafkaException as error:
            raise _client_error(name, error.args[0]) from None

    def _retrying(self, name: str, call: Callable[[], object]) -> None:
        """Repeat a call whose error is retriable, until the deadline."""
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                call()
                return
            except KafkaException as error:
                kafka_error = error.args[0]
                if time.monotonic() > deadline or not _retriable(name, kafka_error):
                    raise _client_error(name, kafka_error) from None
                time.sleep(0.1)


def _retriable(call: str, error: KafkaError) -> bool:
    if error.fatal() or error.txn_requires_abort():
        return False
    if call in ("committed", "commit", "list-offsets") and error.code() in (
        KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._WAIT_COORD,
        KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR, KafkaError.REQUEST_TIMED_OUT,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.UNSTABLE_OFFSET_COMMIT,
    ):  # fmt: skip
        return True
    return bool(error.retriable())


def _client_error(call: str, error: KafkaError) -> ClientError:
    return ClientError(
        call,
        error.name(),
        abortable=bool(error.txn_requires_abort()) or (call == "produce" and not error.fatal()),
        fatal=bool(error.fatal()),
        text=error.str() or "",
    )


def _common(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "bootstrap.servers": config["bootstrap"],
        "client.id": f"{config['name']}-{config['incarnation']}",
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1000,
        "topic.metadata.refresh.interval.ms": 5000,
        "log_level": 3,
        **config["client_config"],
    }


def _consumer_config(config: Mapping[str, Any]) -> dict[str, Any]:
    sessions: dict[str, Any] = {"group.protocol": "consumer"}
    if config["group_protocol"] == "classic":
        session_timeout_ms = config["session_timeout_ms"]
        sessions = {"session.timeout.ms": session_timeout_ms, "heartbeat.interval.ms": session_timeout_ms // 4}
    return {
        **_common(config),
        **sessions,
        "group.id": config["group"],
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": config["auto_offset_reset"],
        "fetch.wait.max.ms": 100,
        "fetch.queue.backoff.ms": 5,
        "queued.max.messages.kbytes": 4096,
    }


def _producer_config(config: Mapping[str, Any]) -> dict[str, Any]:
    transactions: dict[str, Any] = {}
    if config["transactional"]:
        transactions = {
            "transactional.id": config["transactional_id"],
            "transaction.timeout.ms": config["transaction_timeout_ms"],
            # The default of 100 ms is what each transaction waits for, since the one before is still being completed.
            "retry.backoff.ms": 5,
        }
    return {
        **_common(config),
        "enable.idempotence": True,
        "linger.ms": 2,
        "message.timeout.ms": config["message_timeout_ms"],
        "socket.timeout.ms": min(10_000, config["transaction_timeout_ms"]),
        **transactions,
    }
