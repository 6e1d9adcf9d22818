"""Read batch headers from the log segments; a consumer does not show them.

There is one row for each batch of every replica: producer id and epoch, base sequence, whether the batch is
transactional, and for a control batch its type (commit or abort) and its coordinator epoch. Only the fixed layout of
the v2 header is read (61 bytes, magic 2, "Record Batch" in Kafka's documentation of the message format), and the one
record of a control batch; other records are skipped.

    topic  partition  broker  first  last  records  producer_id  producer_epoch  sequence  transactional  control
    crc  coordinator_epoch  marker  intact  fate

`control` is "commit", "abort" or null; a producer_id of −1 means that the producer is not idempotent. The next marker
of its producer in its partition decides what became of a transactional batch: `marker` is its offset, and `fate` is
visible, aborted, control, or open if no marker follows. The batches of one producer with the same marker are a span.

`intact` says whether the bytes of the batch have the CRC that its header names; it is null if they were not read.
"""

import mmap
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import crc32c
import pyarrow as pa
import pyarrow.parquet as pq

from onceproof.harness.record.tables import BATCHES

# base offset, length, leader epoch, magic, crc, attributes, last delta, two timestamps, id, epoch, sequence, records
_HEADER = struct.Struct(">qiibIhiqqqhii")
_PREFIX_BYTES = 12
_CRC_FROM = 21  # the CRC covers a batch from its attributes to its end
_MAGIC = 2
_TRANSACTIONAL, _CONTROL = 0x10, 0x20
_CHUNK_ROWS = 100_000
Row = tuple[Any, ...]
Buffer = bytes | mmap.mmap


def write_batches(
    log_dirs: Mapping[str, Path],
    partitions: Iterable[tuple[str, int]],
    target: Path,
    *,
    headers_only: Callable[[str, tuple[str, int]], bool],
) -> int:
    """Write the batches of these partitions, of all replicas, to a Parquet file; return how many there are.

    `log_dirs` gives each broker's data directory. If `headers_only` is true of a broker and a
    partition, the CRCs of that replica are not checked.
    """
    wanted = list(partitions)
    count = 0
    with pq.ParquetWriter(target, BATCHES.arrow) as writer:
        rows: list[Row] = []
        for broker, folder in sorted(log_dirs.items()):
            for topic, partition in wanted:
                held = replica(folder / f"{topic}-{partition}", crc=not headers_only(broker, (topic, partition)))
                rows.extend((topic, partition, broker, *batch) for batch in held)
                if len(rows) >= _CHUNK_ROWS:  # speed: it bounds the memory
                    count += _flush(writer, rows)
        count += _flush(writer, rows)
    return count


def replica(folder: Path, *, crc: bool = True) -> list[Row]:
    """Return the batches of one replica, over all of its segments: the columns from `first` to `fate`."""
    found: list[Row] = []
    ends: list[tuple[int | None, str]] = []
    pending: dict[int, list[int]] = {}
    for segment in sorted(folder.glob("*.log")):
        for *batch, intact in batches(segment, crc=crc):
            producer, transactional, control = batch[3], batch[6], batch[7]
            if control is not None:
                for place in pending.pop(producer, ()):
                    ends[place] = batch[0], "visible" if control == "commit" else "aborted"
                ends.append((None, "control"))
            elif transactional:
                pending.setdefault(producer, []).append(len(found))
                ends.append((None, "open"))
            else:
                ends.append((None, "visible"))
            found.append((*batch, intact))
    return [(*batch, marker, intact, fate) for (*batch, intact), (marker, fate) in zip(found, ends, strict=True)]


def compacted(held: Sequence[Row]) -> int:
    """Return the number of offsets below the end of a replica that no longer have a record."""
    return held[-1][1] + 1 - sum(batch[2] for batch in held) if held else 0


def _flush(writer: pq.ParquetWriter, rows: list[Row]) -> int:
    count = len(rows)
    if rows:  # speed: an empty row group says nothing
        writer.write_table(pa.table(list(zip(*rows, strict=True)), schema=BATCHES.arrow))
        rows.clear()
    return count


def batches(segment: Path, *, crc: bool = True) -> Iterator[Row]:
    """Yield the batches of one segment file, in order: the columns from `first` to `coordinator_epoch`, and `intact`.

    With `crc` false, only headers are read and `intact` is None. Ends at the first incomplete batch (`remainder`).
    """
    size = segment.stat().st_size
    if size == 0:  # an empty file cannot be mapped
        return
    with segment.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        data.madvise(mmap.MADV_SEQUENTIAL if crc else mmap.MADV_RANDOM)  # speed: reading ahead loads every value
        place = 0
        while place + _HEADER.size <= size:
            (base, length, _, magic, told, attributes, delta, _, _, producer, epoch, sequence, records) = (
                _HEADER.unpack_from(data, place)
            )
            if magic != _MAGIC or length <= 0 or place + _PREFIX_BYTES + length > size:
                return
            intact = _crc(data, place + _CRC_FROM, place + _PREFIX_BYTES + length) == told if crc else None
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
                told,
                coordinator_epoch,
                intact,
            )
            place += _PREFIX_BYTES + length


def remainder(segment: Path) -> int:
    """Return the number of bytes at the end of a segment that are no complete batch of message format 2."""
    place, size = 0, segment.stat().st_size
    with segment.open("rb") as file:
        while place + _HEADER.size <= size:
            file.seek(place)
            _, length, _, magic = struct.unpack(">qiib", file.read(_PREFIX_BYTES + 5))
            if magic != _MAGIC or length <= 0 or place + _PREFIX_BYTES + length > size:
                break
            place += _PREFIX_BYTES + length
    return size - place


def _crc(data: mmap.mmap, first: int, after: int) -> int:
    with memoryview(data) as view, view[first:after] as part:
        return crc32c.crc32c(part)


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
    raw, place = _unsigned_varint(data, place)
    return (raw >> 1) ^ -(raw & 1), place


def _unsigned_varint(data: Buffer, place: int) -> tuple[int, int]:
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
