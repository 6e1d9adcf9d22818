"""The batch reader, and the readers of internal topics, agree with Kafka's own classes on segments that Kafka wrote."""

from pathlib import Path

import jpype
import pytest

from onceproof.verifiers.collect import commits, internal, segments, states
from tests.kafka_writer import RECORDS, batch, java, marker, plain_batch, prefixed

CODECS = ("none", "gzip", "lz4", "snappy", "zstd")


@pytest.mark.parametrize("codec", CODECS)
def test_headers_are_those_that_kafka_reads(tmp_path: Path, codec: str) -> None:
    many = [(f"k{number}".encode(), b"value " * 20) for number in range(30)]
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(batch(0, many, codec) + marker(30, True) + batch(31, many[:5], codec, 8) + marker(36, False, 8))
    theirs = [
        (
            int(each.baseOffset()),
            int(each.lastOffset()),
            int(each.countOrNull()),
            int(each.producerId()),
            int(each.producerEpoch()),
            int(each.baseSequence()),
            bool(each.isTransactional()),
            bool(each.isControlBatch()),
            int(each.checksum()),
            bool(each.isValid()),
        )
        for each in java(f"{RECORDS}.FileRecords").open(jpype.JClass("java.io.File")(str(segment)), False).batches()
    ]
    ours = [(*row[:7], row[7] is not None, row[8], row[11]) for row in segments.replica(tmp_path)]
    assert ours == theirs
    assert [(row[7], row[9], row[10], row[12]) for row in segments.replica(tmp_path)] == [
        (None, None, 30, "visible"),
        ("commit", 42, None, "control"),
        (None, None, 36, "aborted"),
        ("abort", 42, None, "control"),
    ]


def test_a_changed_byte_is_seen_by_its_crc(tmp_path: Path) -> None:
    segment = tmp_path / "00000000000000000000.log"
    written = bytearray(batch(0, [(b"key", b"value")], "none") + marker(1, True))
    written[75] ^= 1
    segment.write_bytes(written)
    assert [row[11] for row in segments.replica(tmp_path)] == [False, True]
    assert [row[11] for row in segments.replica(tmp_path, crc=False)] == [None, None]
    with pytest.raises(ValueError, match=r"00000\.log: .*corrupt"):
        list(internal.records(tmp_path, "transactions"))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("version", [0, 1])
def test_states_of_transactional_ids(tmp_path: Path, codec: str, version: int) -> None:
    generated = "org.apache.kafka.coordinator.transaction.generated"
    key = prefixed(0, java(f"{generated}.TransactionLogKey")().setTransactionalId("orders-1"))
    numbers = jpype.java.util.ArrayList([jpype.java.lang.Integer(2), jpype.java.lang.Integer(5)])
    place = java(f"{generated}.TransactionLogValue$PartitionsSchema")().setTopic("out").setPartitionIds(numbers)
    value = (
        java(f"{generated}.TransactionLogValue")()
        .setProducerId(4000)
        .setProducerEpoch(jpype.JShort(9))
        .setTransactionStatus(jpype.JByte(2))
        .setTransactionPartitions(jpype.java.util.ArrayList([place]))
    )
    if version:
        value.setClientTransactionVersion(jpype.JShort(2))
    written = batch(0, [(key, prefixed(version, value)), (key, None)], codec)
    (tmp_path / "00000000000000000000.log").write_bytes(written)
    first, tombstone = states.read(tmp_path, 3)
    assert first == {
        "log": 3,
        "offset": 0,
        "transactional_id": "orders-1",
        "producer_id": 4000,
        "producer_epoch": 9,
        "state": "PrepareCommit",
        "partitions": ["out/2", "out/5"],
        "version": 2 if version else 0,
    }
    assert (tombstone["state"], tombstone["offset"]) == ("Tombstone", 1)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("version", [1, 3, 4])
def test_committed_offsets(tmp_path: Path, codec: str, version: int) -> None:
    generated = "org.apache.kafka.coordinator.group.generated"
    named = java(f"{generated}.OffsetCommitKey")().setGroup("group").setTopic("in").setPartition(4)
    other = java(f"{generated}.OffsetCommitKey")().setGroup("another").setTopic("in").setPartition(4)
    value = java(f"{generated}.OffsetCommitValue")().setOffset(77).setMetadata("1,2,3").setCommitTimestamp(1234)
    both = [(b"\0\1" + prefixed(0, each)[2:], prefixed(version, value)) for each in (named, other)]
    (tmp_path / "00000000000000000000.log").write_bytes(batch(10, both, codec) + marker(12, True))
    [row] = commits.read(tmp_path, 1, segments.replica(tmp_path), groups={"group": "in"})
    assert row == {
        "topic": "in",
        "log": 1,
        "offset": 10,
        "partition": 4,
        "position": 77,
        "worker": 1,
        "incarnation": 2,
        "transaction": 3,
        "committed_ms": 1234,
        "producer_id": 7,
        "producer_epoch": 3,
        "transactional": True,
        "marker": 12,
        "fate": "visible",
    }


def committed(offset: int, metadata: str | None) -> bytes:
    """A committed offset with this metadata, or the tombstone of one, in a batch of its own."""
    generated = "org.apache.kafka.coordinator.group.generated"
    key = java(f"{generated}.OffsetCommitKey")().setGroup("group").setTopic("in").setPartition(4)
    value = java(f"{generated}.OffsetCommitValue")().setOffset(77).setCommitTimestamp(1)
    told = None if metadata is None else prefixed(3, value.setMetadata(metadata))
    return plain_batch(offset, [(b"\0\1" + prefixed(0, key)[2:], told)])


def test_metadata_that_no_worker_wrote_and_tombstones(tmp_path: Path) -> None:
    several = ("1,2,3", "", "1,2", "1,2,x", "1,2,3,4", "1,2,3\0", None)
    segment = b"".join(committed(offset, metadata) for offset, metadata in enumerate(several))
    (tmp_path / "00000000000000000000.log").write_bytes(segment)
    rows = list(commits.read(tmp_path, 1, segments.replica(tmp_path)))
    assert [(row["offset"], row["worker"], row["transaction"]) for row in rows] == [
        (0, 1, 3),
        (1, None, None),
        (2, None, None),
        (3, None, None),
        (4, None, None),
        (5, 1, 3),
    ]
    assert {row["group"] for row in rows} == {"group"}
    assert not list(commits.read(tmp_path, 1, segments.replica(tmp_path), groups={"group": "another"}))
