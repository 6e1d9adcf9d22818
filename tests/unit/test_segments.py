"""The v2 batch header, read from bytes laid out by hand as the protocol's documentation says."""

import struct
from pathlib import Path

import pytest

from onceproof.verifiers.collect import segments


def batch(base: int, count: int, *, producer: int = -1, attributes: int = 0, body: bytes = b"") -> bytes:
    after_crc = struct.pack(">hiqqqhii", attributes, count - 1, 0, 0, producer, 3, 7, count) + body
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


def test_batches_and_their_fates(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.log").write_bytes(
        batch(0, 10)
        + batch(10, 5, producer=1, attributes=0x10)
        + batch(15, 5, producer=2, attributes=0x10)
        + marker(20, 1, 1)
        + marker(21, 0, 2)
        + batch(22, 4, producer=1, attributes=0x10)
    )
    rows = segments.replica(tmp_path)
    assert [(row[0], row[1]) for row in rows] == [(0, 9), (10, 14), (15, 19), (20, 20), (21, 21), (22, 25)]
    assert [row[-1] for row in rows] == ["visible", "visible", "aborted", "control", "control", "open"]
    assert rows[3][7:10] == ("commit", 0xABCD, 42)
    assert rows[1][3:7] == (1, 3, 7, True)


@pytest.mark.parametrize(
    ("value", "epoch"),
    [(struct.pack(">hi", 0, 42), 42), (struct.pack(">hib", 1, 7, 0), 7), (struct.pack(">h", 0), None), (None, None)],
)
def test_the_coordinator_epoch_of_a_marker(tmp_path: Path, value: bytes | None, epoch: int | None) -> None:
    (tmp_path / "0.log").write_bytes(marker(0, 1, 5, value=value, more=bytes(70)))
    [row] = segments.replica(tmp_path)
    assert row[7:10] == ("commit", 0xABCD, epoch)


_WHOLE = batch(0, 3, body=bytes(20))


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(batch(3, 3, body=bytes(20))[:-4], id="a body that is cut off"),
        pytest.param(batch(3, 3)[:-4], id="a header that is cut off"),
        pytest.param(batch(3, 3)[:16] + b"\1" + batch(3, 3)[17:], id="an older message format"),
        pytest.param(struct.pack(">qiib", 3, 0, 0, 2) + bytes(60), id="a batch without a length"),
        pytest.param(struct.pack(">qiib", 3, -70, 0, 2) + bytes(60), id="a negative length"),
    ],
)
def test_what_is_no_complete_batch_ends_the_segment(tmp_path: Path, rest: bytes) -> None:
    (tmp_path / "0.log").write_bytes(_WHOLE + rest)
    assert [row[1] for row in segments.replica(tmp_path)] == [2]
    assert segments.remainder(tmp_path / "0.log") == len(rest)


def test_a_whole_segment_has_no_remainder(tmp_path: Path) -> None:
    (tmp_path / "0.log").write_bytes(_WHOLE + batch(3, 2))
    assert segments.remainder(tmp_path / "0.log") == 0
    assert [row[1] for row in segments.replica(tmp_path)] == [2, 4]


def test_an_empty_segment(tmp_path: Path) -> None:
    (tmp_path / "0.log").write_bytes(b"")
    assert segments.replica(tmp_path) == []
    assert segments.remainder(tmp_path / "0.log") == 0
    assert segments.compacted([]) == 0


def test_offsets_without_a_record(tmp_path: Path) -> None:
    (tmp_path / "0.log").write_bytes(batch(0, 3) + batch(5, 2))
    assert segments.compacted(segments.replica(tmp_path)) == 2


def test_a_transaction_may_span_segments(tmp_path: Path) -> None:
    (tmp_path / "00.log").write_bytes(batch(0, 3, producer=1, attributes=0x10))
    (tmp_path / "03.log").write_bytes(marker(3, 1, 1))
    assert [row[-1] for row in segments.replica(tmp_path)] == ["visible", "control"]


@pytest.mark.parametrize(("key", "value"), [(None, b"v"), (b"k", None), (None, None), (b"", b"v")])
def test_a_record_without_key_or_value(key: bytes | None, value: bytes | None) -> None:
    record = bytes(3) + field(key) + field(value) + varint(0)
    assert segments._record(field(record), 0) == (0, key, value, len(field(record)))
