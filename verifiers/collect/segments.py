"""Read batch headers from the log segments; a consumer does not show them.

There is one row for each batch of every replica: producer id and epoch, base sequence, whether the batch is
transactional, and for a control batch its type (commit or abort) and its coordinator epoch. Only the fixed layout of
the v2 header is read (61 bytes, magic 2, "Record Batch" in Kafka's documentation of the message format), and the one
record of a control batch; other records are skipped.

    topic  partition  broker  first  last  records  producer_id  producer_epoch  sequence  transactional  control
    crc  coordinator_epoch  fate

`control` is "commit", "abort" or null; a producer_id of −1 means that the producer is not idempotent. The next marker
of its producer in its partition decides what became of a transactional batch: `fate` is visible, aborted, control, or
open if no marker follows.
"""

import mmap
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from onceproof.harness.record.tables import BATCHES

# base offset, length, leader epoch, magic, crc, attributes, last delta, two timestamps, id, epoch, sequence, records
_HEADER = struct.Struct(">qiibIhiqqqhii")
_PREFIX_BYTES = 12
_MAGIC = 2
_COMPRESSION, _TRANSACTIONAL, _CONTROL = 0x07, 0x10, 0x20
_CHUNK_ROWS = 100_000
Row = tuple[Any, ...]
Buffer = bytes | mmap.mmap


def write_batches(log_dirs: Mapping[str, Path], partitions: Iterable[tuple[str, int]], target: Path) -> int:
    """Write the batches of these partitions, of all replicas, to a Parquet file; return how many there are.

    `log_dirs` gives each broker's data directory.
    """
    wanted = list(partitions)
    count = 0
    with pq.ParquetWriter(target, BATCHES.arrow) as writer:
        rows: list[Row] = []
        for broker, folder in sorted(log_dirs.items()):
            for topic, partition in wanted:
                rows.extend((topic, partition, broker, *batch) for batch in replica(folder / f"{topic}-{partition}"))
                if len(rows) >= _CHUNK_ROWS:
                    count += _flush(writer, rows)
        count += _flush(writer, rows)
    return count


def replica(folder: Path) -> list[Row]:
    """Return the batches of one replica, over all of its segments: the columns from `first` to `fate`."""
    found: list[Row] = []
    fates: list[str] = []
    pending: dict[int, list[int]] = {}
    for segment in sorted(folder.glob("*.log")):
        for batch in batches(segment):
            producer, transactional, control = batch[3], batch[6], batch[7]
            if control is not None:
                for place in pending.pop(producer, ()):
                    fates[place] = "visible" if control == "commit" else "aborted"
                fates.append("control")
            elif transactional:
                pending.setdefault(producer, []).append(len(found))
                fates.append("open")
            else:
                fates.append("visible")
            found.append(batch)
    return [(*batch, fate) for batch, fate in zip(found, fates, strict=True)]


def compacted(held: Sequence[Row]) -> int:
    """Return the number of offsets below the end of a replica that no longer have a record."""
    return held[-1][1] + 1 - sum(batch[2] for batch in held) if held else 0


def _flush(writer: pq.ParquetWriter, rows: list[Row]) -> int:
    count = len(rows)
    if rows:
        writer.write_table(pa.table(list(zip(*rows, strict=True)), schema=BATCHES.arrow))
        rows.clear()
    return count


def batches(segment: Path) -> Iterator[Row]:
    """Yield the batches of one segment file, in order: the columns from `first` on, without `fate`.

    Ends at the first incomplete batch.
    """
    size = segment.stat().st_size
    if size == 0:
        return
    with segment.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        data.madvise(mmap.MADV_RANDOM)  # only headers are read; reading ahead would load every value
        place = 0
        while place + _HEADER.size <= size:
            (base, length, _, magic, crc, attributes, delta, _, _, producer, epoch, sequence, records) = (
                _HEADER.unpack_from(data, place)
            )
            if magic != _MAGIC or length <= 0 or place + _PREFIX_BYTES + length > size:
                return
            control, coordinator_epoch = None, None
            if attributes & _CONTROL:
                control, coordinator_epoch = _marker(data, place + _HEADER.size)
            yield (
                base,
                base + delta,
                records,
                producer,
                epoch,
                sequence,
                bool(attributes & _TRANSACTIONAL),
                control,
                crc,
                coordinator_epoch,
            )
            place += _PREFIX_BYTES + length


def records(segment: Path) -> Iterator[tuple[int, bytes, bytes | None]]:
    """Yield the offset, key and value of each data record of an uncompressed segment, in order.

    It is meant for Kafka's internal topics, which are not compressed. Raises ValueError at a compressed batch.
    """
    with segment.open("rb") as file:
        data = file.read()
    place = 0
    while place + _HEADER.size <= len(data):
        header = _HEADER.unpack_from(data, place)
        base, length, attributes, count = header[0], header[1], header[5], header[12]
        if length <= 0 or place + _PREFIX_BYTES + length > len(data):
            return
        if attributes & _COMPRESSION:
            raise ValueError(f"{segment}: the batch at offset {base} is compressed")
        at = place + _HEADER.size
        for _ in range(0 if attributes & _CONTROL else count):
            delta, key, value, at = _record(data, at)
            yield base + delta, key or b"", value
        place += _PREFIX_BYTES + length


def _record(data: Buffer, place: int) -> tuple[int, bytes | None, bytes | None, int]:
    """Return the offset delta, key and value of the record at this place, and the place after the record."""
    length, place = _varint(data, place)
    end = place + length
    _, place = _varint(data, place + 1)  # attributes, timestamp delta
    delta, place = _varint(data, place)
    key, place = _bytes(data, place)
    value, _ = _bytes(data, place)
    return delta, key, value, end


def _bytes(data: Buffer, place: int) -> tuple[bytes | None, int]:
    """Return bytes behind their length as a varint (None if it is negative), and the place after them."""
    length, place = _varint(data, place)
    return (None, place) if length < 0 else (bytes(data[place : place + length]), place + length)


def _marker(data: Buffer, place: int) -> tuple[str, int | None]:
    """Return the type of a control record, and its coordinator epoch if it has one."""
    _, key, value, _ = _record(data, place)
    _, kind = struct.unpack_from(">hh", key or b"")
    epoch = struct.unpack_from(">hi", value)[1] if value is not None and len(value) >= 6 else None
    return {0: "abort", 1: "commit"}.get(kind, f"control-{kind}"), epoch


def _varint(data: Buffer, place: int) -> tuple[int, int]:
    """Return a zig-zag variable-length integer, and the place after it."""
    raw, place = unsigned_varint(data, place)
    return (raw >> 1) ^ -(raw & 1), place


def unsigned_varint(data: Buffer, place: int) -> tuple[int, int]:
    """Return an unsigned variable-length integer, and the place after it."""
    raw = shift = 0
    for _ in range(10):
        byte = data[place]
        place += 1
        raw |= (byte & 0x7F) << shift
        if not byte & 0x80:
            break
        shift += 7
    return raw, place
