"""The v2 batch header, read from bytes laid out by hand as the protocol's documentation says."""

import struct
from pathlib import Path

from onceproof.verifiers.collect import segments


def batch(base: int, count: int, *, producer: int = -1, attributes: int = 0, body: bytes = b"") -> bytes:
    after_crc = struct.pack(">hiqqqhii", attributes, count - 1, 0, 0, producer, 3, 7, count) + body
    after_length = struct.pack(">ibI", 0, 2, 0xABCD) + after_crc
    return struct.pack(">qi", base, len(after_length)) + after_length


def marker(base: int, kind: int, producer: int) -> bytes:
    key, value = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 42)
    record = bytes([0, 0, 0, len(key) * 2]) + key + bytes([len(value) * 2]) + value + b"\0"
    return batch(base, 1, producer=producer, attributes=0x30, body=bytes([len(record) * 2]) + record)


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


def test_an_incomplete_batch_ends_the_segment(tmp_path: Path) -> None:
    whole = batch(0, 3) + batch(3, 3)
    (tmp_path / "0.log").write_bytes(whole[:-4])
    assert [row[1] for row in segments.replica(tmp_path)] == [2]


def test_a_transaction_may_span_segments(tmp_path: Path) -> None:
    (tmp_path / "00.log").write_bytes(batch(0, 3, producer=1, attributes=0x10))
    (tmp_path / "03.log").write_bytes(marker(3, 1, 1))
    assert [row[-1] for row in segments.replica(tmp_path)] == ["visible", "control"]
