"""The Java driver's producer: transactions, or plain produce when the workload's wiring has none."""

from collections.abc import Mapping
from typing import Any

import jpype

from onceproof.harness.record.provenance import HEADER
from onceproof.workloads.clients.java.calls import CALL_TIMEOUT_MS, call, configured, positions, properties, start_jvm
from onceproof.workloads.clients.settings import patience_s, production

_BYTES = "org.apache.kafka.common.serialization.ByteArraySerializer"


class Writer:
    """A producer, as `onceproof.workloads.clients.Writer` describes it."""

    def __init__(self, config: Mapping[str, Any], transactional_id: str | None) -> None:
        start_jvm(config)
        self._transactional = transactional_id is not None
        self._patience_s = patience_s(config)
        self._sent: dict[str, list[Any]] = {}
        self._record = jpype.JClass("org.apache.kafka.clients.producer.ProducerRecord")
        self._header = jpype.JClass("org.apache.kafka.common.header.internals.RecordHeader")
        producer = jpype.JClass("org.apache.kafka.clients.producer.KafkaProducer")
        ours = production(config, transactional_id)
        # The client requires this to be at least the linger time and the request time-out together.
        delivery_timeout_ms = max(config["message_timeout_ms"], config["request_timeout_ms"] + ours["linger.ms"])
        self._producer = producer(
            properties(
                configured(
                    config,
                    {
                        **ours,
                        "key.serializer": _BYTES,
                        "value.serializer": _BYTES,
                        "delivery.timeout.ms": delivery_timeout_ms,
                        "max.block.ms": CALL_TIMEOUT_MS,
                    },
                )
            )
        )

    def start(self) -> None:
        """Initialise the transactional id (InitProducerId), if there is one."""
        if self._transactional:
            call("init-transactions", self._producer.initTransactions, patience=self._patience_s)

    def begin(self) -> None:
        """Begin a transaction."""
        self._sent = {}
        if self._transactional:
            call("begin", self._producer.beginTransaction)

    def send(self, topic: str, partition: int, key: bytes, value: bytes, header: bytes) -> None:
        """Send a record without waiting for its acknowledgement."""
        headers = jpype.java.util.ArrayList()
        headers.add(self._header(HEADER, _array(header)))
        record = self._record(topic, jpype.JInt(partition), None, _array(key), _array(value), headers)
        future = call("produce", lambda: self._producer.send(record))
        self._sent.setdefault(f"{topic}/{partition}", []).append(future)

    def flush(self) -> dict[str, list[int]]:
        """Wait for all acknowledgements: `topic/partition` → [count, first offset, last offset]."""
        call("flush", self._producer.flush)
        return {place: self._acknowledged(futures) for place, futures in self._sent.items()}

    def send_offsets(self, topic: str, ranges: Mapping[int, tuple[int, int]], metadata: str, group: object) -> None:
        """Add the offsets that follow these ranges to the transaction."""
        offsets = positions(topic, ranges, metadata)
        call("send-offsets", lambda: self._producer.sendOffsetsToTransaction(offsets, group), patience=self._patience_s)

    def commit(self) -> None:
        """Commit the transaction."""
        if self._transactional:
            call("commit", self._producer.commitTransaction, patience=self._patience_s)

    def abort(self) -> None:
        """Abort the transaction."""
        if self._transactional:
            call("abort", self._producer.abortTransaction, patience=self._patience_s)

    @staticmethod
    def _acknowledged(futures: list[Any]) -> list[int]:
        """Return [count, first offset, last offset]; -1 for offsets if one record was acknowledged without."""
        offsets = [int(call("produce", future.get).offset()) for future in futures]
        if min(offsets) < 0:
            return [len(offsets), -1, -1]
        return [len(offsets), offsets[0], offsets[-1]]


def _array(data: bytes) -> Any:
    return jpype.JArray(jpype.JByte)(data)
