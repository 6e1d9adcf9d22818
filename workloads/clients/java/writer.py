"""One producer of a worker: transactions, or plain produce when the workload's wiring has none."""

from collections.abc import Mapping
from typing import Any

import jpype

from onceproof.harness.record.provenance import HEADER
from onceproof.workloads.clients.java.calls import CALL_TIMEOUT_MS, call, configured, positions, properties, start_jvm
from onceproof.workloads.clients.settings import patience_s, production

_BYTES = "org.apache.kafka.common.serialization.ByteArraySerializer"


class Writer:
    def __init__(self, config: Mapping[str, Any], transactional_id: str | None) -> None:
        start_jvm(config)
        self._transactional = transactional_id is not None
        self._patience_s = patience_s(config)
        self._sent: dict[str, list[Any]] = {}
        self._record = jpype.JClass("org.apache.kafka.clients.producer.ProducerRecord")
        self._header = jpype.JClass("org.apache.kafka.common.header.internals.RecordHeader")
        producer = jpype.JClass("org.apache.kafka.clients.producer.KafkaProducer")
        ours = production(config, transactional_id)
        # A batch is given up after this; it must be at least linger and request time-out together.
        patience = max(config["message_timeout_ms"], config["request_timeout_ms"] + ours["linger.ms"])
        self._producer = producer(
            properties(
                configured(
                    config,
                    {
                        **ours,
                        "key.serializer": _BYTES,
                        "value.serializer": _BYTES,
                        "delivery.timeout.ms": patience,
                        "max.block.ms": CALL_TIMEOUT_MS,
                    },
                )
            )
        )

    def start(self) -> None:
        if self._transactional:
            call("init-transactions", self._producer.initTransactions, patience=self._patience_s)

    def begin(self) -> None:
        self._sent = {}
        if self._transactional:
            call("begin", self._producer.beginTransaction)

    def send(self, topic: str, partition: int, key: bytes, value: bytes, header: bytes) -> None:
        headers = jpype.java.util.ArrayList()
        headers.add(self._header(HEADER, _array(header)))
        record = self._record(topic, jpype.JInt(partition), None, _array(key), _array(value), headers)
        future = call("produce", lambda: self._producer.send(record))
        self._sent.setdefault(f"{topic}/{partition}", []).append(future)

    def flush(self) -> dict[str, list[int]]:
        call("flush", self._producer.flush)
        return {place: self._acknowledged(futures) for place, futures in self._sent.items()}

    def send_offsets(self, topic: str, ranges: Mapping[int, tuple[int, int]], metadata: str, group: object) -> None:
        behind = positions(topic, ranges, metadata)
        call("send-offsets", lambda: self._producer.sendOffsetsToTransaction(behind, group), patience=self._patience_s)

    def commit(self) -> None:
        if self._transactional:
            call("commit", self._producer.commitTransaction, patience=self._patience_s)

    def abort(self) -> None:
        if self._transactional:
            call("abort", self._producer.abortTransaction, patience=self._patience_s)

    @staticmethod
    def _acknowledged(futures: list[Any]) -> list[int]:
        """[count, first offset, last offset]; the offsets negative where one was acknowledged without its own."""
        offsets = [int(call("produce", future.get).offset()) for future in futures]
        if min(offsets) < 0:
            return [len(offsets), -1, -1]
        return [len(offsets), offsets[0], offsets[-1]]


def _array(data: bytes) -> Any:
    return jpype.JArray(jpype.JByte)(data)
