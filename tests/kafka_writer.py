"""Batches, markers and records of internal topics as Kafka itself writes them."""

from collections.abc import Sequence
from typing import Any

import jpype

from onceproof.harness.cluster.admin import start_jvm

RECORDS = "org.apache.kafka.common.record.internal"
_TRANSACTIONS = "org.apache.kafka.coordinator.transaction.generated"
_OFFSETS = "org.apache.kafka.coordinator.group.generated"


def java(name: str) -> Any:
    start_jvm()
    return jpype.JClass(name)


def compression(codec: str) -> Any:
    kind = "org.apache.kafka.common.record.internal.CompressionType"
    return java("org.apache.kafka.common.compress.Compression").of(java(kind).forName(codec)).build()


def batch(
    base: int, records: Sequence[tuple[bytes, bytes | None]], codec: str, producer: int = 7, sequence: int = 0
) -> bytes:
    """A transactional batch, written by Kafka."""
    memory = java(f"{RECORDS}.MemoryRecords")
    return as_bytes(
        memory.withTransactionalRecords(
            jpype.JLong(base),
            compression(codec),
            jpype.JLong(producer),
            jpype.JShort(3),
            jpype.JInt(sequence),
            0,
            simple_records(records),
        )
    )


def idempotent_batch(base: int, records: Sequence[tuple[bytes, bytes | None]], *, sequence: int, epoch: int) -> bytes:
    """A batch of an idempotent producer without a transaction, written by Kafka."""
    memory = java(f"{RECORDS}.MemoryRecords")
    return as_bytes(
        memory.withIdempotentRecords(
            jpype.JLong(base),
            compression("none"),
            jpype.JLong(9),
            jpype.JShort(epoch),
            jpype.JInt(sequence),
            0,
            simple_records(records),
        )
    )


def plain_batch(base: int, records: Sequence[tuple[bytes, bytes | None]]) -> bytes:
    """A batch without a producer id, as coordinators write them."""
    memory = java(f"{RECORDS}.MemoryRecords")
    return as_bytes(
        memory.withRecords(jpype.JLong(base), compression("none"), jpype.java.lang.Integer(0), simple_records(records))
    )


def simple_records(records: Sequence[tuple[bytes, bytes | None]]) -> list[Any]:
    """Records as Kafka's writer takes them."""
    simple, data = java(f"{RECORDS}.SimpleRecord"), jpype.JArray(jpype.JByte)
    return [simple(data(key), value and data(value)) for key, value in records]


def marker(base: int, commit: bool, producer: int = 7) -> bytes:
    """The marker that ends a transaction, of a coordinator with epoch 42."""
    kind = java(f"{RECORDS}.ControlRecordType")
    marker = java(f"{RECORDS}.EndTransactionMarker")(kind.COMMIT if commit else kind.ABORT, 42)
    memory = java(f"{RECORDS}.MemoryRecords")
    return as_bytes(
        memory.withEndTransactionMarker(
            jpype.JLong(base), jpype.JLong(0), 0, jpype.JLong(producer), jpype.JShort(3), marker
        )
    )


def as_bytes(records: Any) -> bytes:
    buffer = records.buffer()
    return bytes(buffer.array())[: buffer.limit()]


def prefixed(version: int, message: Any) -> bytes:
    """A key or value as Kafka's coordinators write it, behind its version."""
    return bytes(
        java("org.apache.kafka.common.protocol.MessageUtil").toVersionPrefixedBytes(jpype.JShort(version), message)
    )


def group_partition(group: str, topic: str, partition: int) -> bytes:
    """The key of the offsets in __consumer_offsets that a group committed for a partition."""
    key = java(f"{_OFFSETS}.OffsetCommitKey")().setGroup(group).setTopic(topic).setPartition(partition)
    return b"\0\1" + prefixed(0, key)[2:]  # Kafka's class has the version 0, and coordinators write 1


def committed_offset(offset: int, metadata: str = "", *, at_ms: int = 1, version: int = 3) -> bytes:
    """The value of a record in __consumer_offsets."""
    value = java(f"{_OFFSETS}.OffsetCommitValue")().setOffset(offset).setMetadata(metadata)
    return prefixed(version, value.setCommitTimestamp(at_ms))


def transactional_id(name: str) -> bytes:
    """The key of a transactional id's records in __transaction_state."""
    return prefixed(0, java(f"{_TRANSACTIONS}.TransactionLogKey")().setTransactionalId(name))


def transaction_state(
    status: int,
    *,
    topic: str = "out",
    partitions: Sequence[int] = (),
    producer: int = 7,
    epoch: int = 0,
    client_version: int | None = None,
) -> bytes:
    """The value of a record in __transaction_state; with the transaction version of its client it has version 1."""
    value = (
        java(f"{_TRANSACTIONS}.TransactionLogValue")()
        .setProducerId(producer)
        .setProducerEpoch(jpype.JShort(epoch))
        .setTransactionStatus(jpype.JByte(status))
    )
    if partitions:
        numbers = jpype.java.util.ArrayList([jpype.java.lang.Integer(each) for each in partitions])
        place = java(f"{_TRANSACTIONS}.TransactionLogValue$PartitionsSchema")().setTopic(topic).setPartitionIds(numbers)
        value.setTransactionPartitions(jpype.java.util.ArrayList([place]))
    if client_version is None:
        return prefixed(0, value)
    return prefixed(1, value.setClientTransactionVersion(jpype.JShort(client_version)))
