"""The v2 batch header, read from bytes laid out by hand as the protocol's documentation says."""

import random
import struct
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from onceproof.verifiers.collect import segments
from onceproof.verifiers.collect.segments import Replica
from onceproof.verifiers.evidence.frames import rows
from tests.histories.columns import ended


def batch(
    base: int, count: int, *, producer: int = -1, attributes: int = 0, body: bytes = b"", epoch: int = 3
) -> bytes:
    after_crc = struct.pack(">hiqqqhii", attributes, count - 1, 0, 0, producer, epoch, 7, count) + body
    after_length = struct.pack(">ibI", 0, 2, 0xABCD) + after_crc
    return struct.pack(">qi", base, len(after_length)) + after_length


def varint(number: int) -> bytes:
    """A zig-zag variable-length integer."""
    raw, found = (number << 1) ^ (number >> 63), bytearray()
    while raw > 0x7F:
        found.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*found, raw])


def field(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def marker(
    base: int, kind: int, producer: int, *, value: bytes | None = struct.pack(">hi", 0, 42), more: bytes = b""
) -> bytes:
    record = bytes(3) + field(struct.pack(">hh", 0, kind) + more) + field(value) + varint(0)
    return batch(base, 1, producer=producer, attributes=0x30, body=field(record))


def replica(folder: Path, *, crcs: bool = False) -> Replica:
    return Replica(topic="t", partition=0, broker="broker1", folder=folder, crcs=crcs)


@pytest.fixture
def read(spark: SparkSession, tmp_path: Path) -> Any:
    """Write segments, each under the number that it has as an argument, and return what is read of them."""

    def of(*written: bytes) -> list[Any]:
        for number, each in enumerate(written):
            (tmp_path / f"{number:020}.log").write_bytes(each)
        return rows(segments.read(spark, [replica(tmp_path)]).orderBy("first"))

    return of


@pytest.fixture
def ends(spark: SparkSession, tmp_path: Path) -> Any:
    def of(written: bytes) -> list[tuple[str, int]]:
        (tmp_path / "0.log").write_bytes(written)
        told = segments.read_with_ends(spark, [replica(tmp_path)]).where("rest IS NOT NULL")
        return [(row["segment"], row["rest"]) for row in rows(told)]

    return of


def test_batches_and_their_fates(read: Any) -> None:
    found = read(
        batch(0, 10)
        + batch(10, 5, producer=1, attributes=0x10)
        + batch(15, 5, producer=2, attributes=0x10)
        + marker(20, 1, 1)
        + marker(21, 0, 2)
        + batch(22, 4, producer=1, attributes=0x10)
    )
    assert [(row["first"], row["last"]) for row in found] == [(0, 9), (10, 14), (15, 19), (20, 20), (21, 21), (22, 25)]
    assert [row["fate"] for row in found] == ["visible", "visible", "aborted", "control", "control", "open"]
    assert [row["marker"] for row in found] == [None, 20, 21, None, None, None]
    assert (found[3]["control"], found[3]["crc"], found[3]["coordinator_epoch"]) == ("commit", 0xABCD, 42)
    told = found[1]
    assert (told["producer_id"], told["producer_epoch"], told["sequence"], told["transactional"]) == (1, 3, 7, True)
    assert {(row["topic"], row["partition"], row["broker"], row["intact"]) for row in found} == {
        ("t", 0, "broker1", None)
    }


@pytest.mark.parametrize(
    ("value", "epoch"),
    [(struct.pack(">hi", 0, 42), 42), (struct.pack(">hib", 1, 7, 0), 7), (struct.pack(">h", 0), None), (None, None)],
)
def test_the_coordinator_epoch_of_a_marker(read: Any, value: bytes | None, epoch: int | None) -> None:
    [row] = read(marker(0, 1, 5, value=value, more=bytes(70)))
    assert (row["control"], row["crc"], row["coordinator_epoch"]) == ("commit", 0xABCD, epoch)


def test_a_control_record_of_another_type(read: Any) -> None:
    first, second = read(batch(0, 1, producer=1, attributes=0x10) + marker(1, 5, 1))
    assert (first["fate"], second["control"]) == ("aborted", "control-5")


_WHOLE = batch(0, 3, body=bytes(20))


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(batch(3, 3, body=bytes(20))[:-4], id="a body that is cut off"),
        pytest.param(batch(3, 3)[:-4], id="a header that is cut off"),
        pytest.param(batch(3, 3)[:16] + b"\1" + batch(3, 3)[17:], id="an older message format"),
        pytest.param(struct.pack(">qiib", 3, 0, 0, 2) + bytes(60), id="a batch without a length"),
        pytest.param(struct.pack(">qiib", 3, -70, 0, 2) + bytes(60), id="a negative length"),
        pytest.param(struct.pack(">qiib", 3, 48, 0, 2) + bytes(60), id="a batch that is shorter than its header"),
    ],
)
def test_what_is_no_complete_batch_ends_the_segment(tmp_path: Path, read: Any, ends: Any, rest: bytes) -> None:
    assert [row["last"] for row in read(_WHOLE + rest)] == [2]
    (tmp_path / f"{0:020}.log").unlink()
    assert ends(_WHOLE + rest) == [(str(tmp_path / "0.log"), len(rest))]


def test_a_whole_segment_has_no_rest(read: Any, ends: Any) -> None:
    assert ends(_WHOLE + batch(3, 2)) == []
    assert ends(b"") == []
    assert ends(b"\0") != []


def test_segments_without_a_batch(spark: SparkSession, tmp_path: Path, read: Any) -> None:
    assert read(b"") == []
    assert rows(segments.read(spark, [replica(tmp_path / "none")])) == []
    assert rows(segments.read(spark, [])) == []
    assert [row["first"] for row in read(b"", batch(4, 1), b"", batch(5, 1))] == [4, 5]


def test_a_transaction_may_span_segments(read: Any) -> None:
    first, second = read(batch(0, 3, producer=1, attributes=0x10), marker(3, 1, 1))
    assert (first["fate"], first["marker"], second["fate"]) == ("visible", 3, "control")


@pytest.mark.parametrize("seed", range(8))
def test_each_batch_has_the_next_marker_of_its_producer(read: Any, seed: int) -> None:
    """Three producers write short and long transactions over several segments, and some of them stay open."""
    chance, written, expected = random.Random(seed), [b"" for _ in range(6)], []
    for offset in range(300):
        producer, ends = chance.choice((1, 1, 1, 2, 3)), chance.random() < (0.3 if offset < 200 else 0.05)
        plain = not ends and chance.random() < 0.1
        control = chance.choice(("commit", "abort")) if ends else None
        expected.append({"first": offset, "producer_id": producer, "transactional": not plain, "control": control})
        written[offset // 50] += (
            marker(offset, int(control == "commit"), producer)
            if ends
            else batch(
                offset, 1, producer=producer, attributes=0 if plain else 0x10, body=bytes(chance.randint(0, 9999))
            )
        )
    found = read(*written)
    assert [(row["first"], row["marker"], row["fate"]) for row in found] == [
        (row["first"], *ended_by) for row, ended_by in zip(expected, ended(expected), strict=True)
    ]


@pytest.mark.parametrize(
    "record", [bytes(3) + field(None) + field(b"v") + varint(0), bytes(3) + field(b"k"), b"\xff" * 9]
)
def test_a_marker_whose_record_is_damaged(read: Any, record: bytes) -> None:
    [row] = read(batch(0, 1, producer=1, attributes=0x30, body=field(record)))
    assert (row["control"], row["coordinator_epoch"], row["fate"]) == ("unreadable", None, "control")
