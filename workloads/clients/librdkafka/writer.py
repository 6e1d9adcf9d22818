"""The librdkafka driver's producer: transactions, or plain produce when the workload's wiring has none."""

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from onceproof.harness.record.provenance import HEADER
from onceproof.workloads.clients import ClientError
from onceproof.workloads.clients.librdkafka.calls import (
    CALL_TIMEOUT_S,
    call,
    client_error,
    configured,
    positions,
    retrying,
)
from onceproof.workloads.clients.settings import patience_s, production


class Writer:
    """A producer, as `onceproof.workloads.clients.Writer` describes it."""

    def __init__(self, config: Mapping[str, Any], transactional_id: str | None) -> None:
        self._transactional = transactional_id is not None
        self._patience_s = patience_s(config)
        self._delivered: dict[str, list[int]] = {}
        self._failed: KafkaError | None = None
        self._producer = Producer(
            configured(
                config,
                {
                    **production(config, transactional_id),
                    "message.timeout.ms": config["message_timeout_ms"],
                    "socket.timeout.ms": min(config["request_timeout_ms"], config["transaction_timeout_ms"]),
                },
            )
        )

    def start(self) -> None:
        """Initialise the transactional id (InitProducerId), if there is one."""
        if self._transactional:
            self._retrying("init-transactions", lambda: self._producer.init_transactions(CALL_TIMEOUT_S))

    def begin(self) -> None:
        """Begin a transaction."""
        self._delivered, self._failed = {}, None
        if self._transactional:
            call("begin", self._producer.begin_transaction)

    def send(self, topic: str, partition: int, key: bytes, value: bytes, header: bytes) -> None:
        """Send a record without waiting for its acknowledgement; waits while the client's queue is full."""
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                self._producer.produce(
                    topic, value, key, partition, on_delivery=self._on_delivery, headers=[(HEADER, header)]
                )
                return
            except BufferError:
                if time.monotonic() > deadline:
                    raise ClientError("produce", "_QUEUE_FULL", abortable=True, fatal=False) from None
                call("produce", lambda: self._producer.poll(0.1))
            except KafkaException as error:
                raise client_error("produce", error.args[0]) from None

    def flush(self) -> dict[str, list[int]]:
        """Wait for all acknowledgements: `topic/partition` → [count, first offset, last offset]."""
        left = call("flush", lambda: self._producer.flush(self._patience_s))
        if self._failed is not None:
            raise client_error("produce", self._failed)
        if left:
            raise ClientError(
                "flush", "_TIMED_OUT", abortable=True, fatal=False, text=f"{left} records were not acknowledged in time"
            )
        return self._delivered

    def send_offsets(self, topic: str, ranges: Mapping[int, tuple[int, int]], metadata: str, group: object) -> None:
        """Add the offsets that follow these ranges to the transaction."""
        offsets = positions(topic, ranges, metadata)
        self._retrying(
            "send-offsets", lambda: self._producer.send_offsets_to_transaction(offsets, group, CALL_TIMEOUT_S)
        )

    def commit(self) -> None:
        """Commit the transaction."""
        if self._transactional:
            self._retrying("commit", lambda: self._producer.commit_transaction(CALL_TIMEOUT_S))

    def abort(self) -> None:
        """Abort the transaction."""
        if self._transactional:
            self._retrying("abort", lambda: self._producer.abort_transaction(CALL_TIMEOUT_S))

    def _retrying(self, name: str, function: Any) -> None:
        retrying(name, self._patience_s, function)

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
            # A batch that the broker already has (DUPLICATE_SEQUENCE_NUMBER) is acknowledged without its offset.
            self._delivered[place] = [seen[0] + 1, -1, -1]
        else:
            seen[0] += 1
            seen[2] = offset
