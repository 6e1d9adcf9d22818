"""The batch reader, and the readers of internal topics, agree with Kafka's own classes on segments that Kafka wrote."""

from pathlib import Path
from typing import Any

import jpype
import pytest
from pyspark.sql import SparkSession

from onceproof.harness.base import coordinators
from onceproof.verifiers.collect import commits, internal, segments, states
from onceproof.verifiers.collect.segments import Replica
from onceproof.verifiers.evidence.frames import rows
from tests.kafka_writer import (
    RECORDS,
    batch,
    committed_offset,
    group_partition,
    java,
    marker,
    plain_batch,
    transaction_state,
    transactional_id,
)


def read(spark: SparkSession, folder: Path, *, crcs: bool = True) -> list[Any]:
    """The rows of the table `batches` of a replica."""
    one = Replica(topic="t", partition=0, broker="broker1", folder=folder, crcs=crcs)
    return rows(segments.read(spark, [one]).orderBy("first"))


CODECS = ("none", "gzip", "lz4", "snappy", "zstd")


@pytest.mark.parametrize("codec", CODECS)
def test_headers_are_those_that_kafka_reads(spark: SparkSession, tmp_path: Path, codec: str) -> None:
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
    found = read(spark, tmp_path)
    assert [(*row[3:10], row["control"] is not None, row["crc"], row["intact"]) for row in found] == theirs
    assert [(row["control"], row["coordinator_epoch"], row["marker"], row["fate"]) for row in found] == [
        (None, None, 30, "visible"),
        ("commit", 42, None, "control"),
        (None, None, 36, "aborted"),
        ("abort", 42, None, "control"),
    ]


def test_a_changed_byte_is_seen_by_its_crc(spark: SparkSession, tmp_path: Path) -> None:
    segment = tmp_path / "00000000000000000000.log"
    written = bytearray(batch(0, [(b"key", b"value")], "none") + marker(1, True))
    written[75] ^= 1
    segment.write_bytes(written)
    assert [row["intact"] for row in read(spark, tmp_path)] == [False, True]
    assert [row["intact"] for row in read(spark, tmp_path, crcs=False)] == [None, None]
    with pytest.raises(ValueError, match=r"00000\.log: .*corrupt"):
        list(internal.records(tmp_path, "transactions"))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("version", [0, 1])
def test_states_of_transactional_ids(tmp_path: Path, codec: str, version: int) -> None:
    key, client_version = transactional_id("orders-1"), 2 if version else None
    value = transaction_state(2, partitions=(2, 5), producer=4000, epoch=9, client_version=client_version)
    written = batch(0, [(key, value), (key, None)], codec)
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


@pytest.mark.parametrize("state", [-1, 8])
def test_a_state_that_is_not_known_is_refused(tmp_path: Path, state: int) -> None:
    written = batch(0, [(transactional_id("orders-1"), transaction_state(state))], "none")
    (tmp_path / "00000000000000000000.log").write_bytes(written)
    with pytest.raises(ValueError, match=f"offset 0: unknown state {state}$"):
        list(states.read(tmp_path, 3))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("version", [1, 3, 4])
def test_committed_offsets(tmp_path: Path, codec: str, version: int) -> None:
    value = committed_offset(77, "1,2,3", at_ms=1234, version=version)
    both = [(group_partition(group, "in", 4), value) for group in ("group", "another")]
    (tmp_path / "00000000000000000000.log").write_bytes(batch(10, both, codec) + marker(12, True))
    [row] = commits.read(tmp_path, 1, groups={"group": "in"})
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
    told = None if metadata is None else committed_offset(77, metadata)
    return plain_batch(offset, [(group_partition("group", "in", 4), told)])


def test_metadata_that_no_worker_wrote_and_tombstones(tmp_path: Path) -> None:
    several = ("1,2,3", "", "1,2", "1,2,x", "1,2,3,4", "1,2,3\0", None)
    segment = b"".join(committed(offset, metadata) for offset, metadata in enumerate(several))
    (tmp_path / "00000000000000000000.log").write_bytes(segment)
    found = list(commits.read(tmp_path, 1))
    assert [(row["offset"], row["worker"], row["transaction"]) for row in found] == [
        (0, 1, 3),
        (1, None, None),
        (2, None, None),
        (3, None, None),
        (4, None, None),
        (5, 1, 3),
    ]
    assert {row["group"] for row in found} == {"group"}
    assert not list(commits.read(tmp_path, 1, groups={"group": "another"}))


def test_the_transactions_of_committed_offsets(tmp_path: Path) -> None:
    """One that is aborted, one that a coordinator's commit came between, and one that is open."""
    one: list[tuple[bytes, bytes | None]] = [(group_partition("group", "in", 4), committed_offset(77))]
    first, second = tmp_path / "00000000000000000000.log", tmp_path / "00000000000000000004.log"
    first.write_bytes(batch(0, one, "none") + plain_batch(1, one) + marker(2, False) + batch(3, one, "none"))
    second.write_bytes(marker(4, True) + batch(5, one, "none", 8))
    found = [dict(row) for row in commits.read(tmp_path, 1)]  # as it is when it is yielded
    assert [(row["offset"], row["producer_id"], row["marker"], row["fate"]) for row in found] == [
        (0, 7, 2, "aborted"),
        (1, -1, None, "visible"),
        (3, 7, 4, "visible"),
        (5, 8, None, "open"),
    ]


@pytest.mark.parametrize("name", ["", "group", "op-1a2b3c4d-7-worker-0", "ключ", "\N{ROCKET} 7", "polygenelubricants"])
def test_the_partition_of_a_coordinator(name: str) -> None:
    """The last name has the lowest integer for a hash code."""
    code = int(java("java.lang.String")(name).hashCode())
    assert coordinators.partition(name, 50) == (0 if code == -(1 << 31) else abs(code)) % 50


def test_offsets_without_a_record(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.log").write_bytes(batch(0, [(b"k", b"v")] * 3, "none") + marker(5, True))
    assert internal.compacted(tmp_path) == 2
    (tmp_path / "00000000000000000009.log").write_bytes(batch(10, [(b"k", b"v")], "none"))
    (tmp_path / "00000000000000000011.log").write_bytes(b"")
    assert internal.compacted(tmp_path) == 6
    assert internal.compacted(tmp_path / "none") == 0


def test_whose_states_are_of_the_run() -> None:
    """An instance may be killed before it has an output: its transactions have offsets, or topics of its own."""

    def row(name: str, producer: int | None, *partitions: str) -> dict[str, Any]:
        about = {} if producer is None else {"producer_id": producer}
        return {"transactional_id": name, "partitions": list(partitions), **about}

    everything = [
        row("writes", 1),
        row("writes", 1, "run-output/0", "__consumer_offsets/3"),
        row("writes", None),  # a tombstone
        row("commits-offsets", 2, "__consumer_offsets/3"),
        row("of-another-run", 3, "another-output/0", "__consumer_offsets/3"),
    ]
    found = states.of_run(lambda: iter(everything), lambda topic: topic.startswith("run-"), {1, 2})
    assert list(found) == everything[:4]
    found = states.of_run(lambda: iter(everything), lambda topic: topic.startswith("run-"), {3})
    assert [each["transactional_id"] for each in found] == ["writes"] * 3 + ["of-another-run"]
