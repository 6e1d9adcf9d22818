"""Read the offsets that a group committed, in the order of its partition of __consumer_offsets.

An admin client shows the last committed offset only; the log also shows the order of the commits. The workers put
`worker,incarnation,transaction` into the metadata of each commit.

    offset  partition  position  worker  incarnation  transaction  producer_id  producer_epoch  fate

`offset` is the record's offset in the group's partition, `partition` the input partition, `position` the committed
offset. `fate` is as in `segments`. The layout of the records is that of OffsetCommitKey and OffsetCommitValue in
Kafka's group coordinator; versions 0 to 4 of the value are known.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from onceproof.harness.record.tables import COMMITS
from onceproof.verifiers.collect import segments

_OFFSET_KEYS = (0, 1)
_FLEXIBLE = 4
_WITH_LEADER_EPOCH = 3


def write_commits(replica: Path, batches: Sequence[segments.Row], group: str, topic: str, target: Path) -> int:
    """Write the commits of `group` on `topic` in one replica's folder to a Parquet file; return how many there are.

    `batches` are the replica's batches, as `segments.replica` returns them. Raises ValueError when a record has an
    unknown layout or a batch is compressed.
    """
    firsts = [batch[0] for batch in batches]
    rows: list[dict[str, Any]] = []
    for segment in sorted(replica.glob("*.log")):
        for offset, key, value in segments.records(segment):
            partition = _partition(key, group, topic)
            if partition is None or value is None:
                continue
            position, metadata = _value(value)
            batch = batches[bisect_right(firsts, offset) - 1]
            rows.append(
                {
                    "offset": offset,
                    "partition": partition,
                    "position": position,
                    **_owner(metadata),
                    "producer_id": batch[3],
                    "producer_epoch": batch[4],
                    "fate": batch[-1],
                }
            )
    pq.write_table(pa.Table.from_pylist(rows, COMMITS.arrow), target)
    return len(rows)


def _partition(key: bytes, group: str, topic: str) -> int | None:
    """Return the partition that an OffsetCommitKey names; None if the key is of another kind, group or topic."""
    if struct.unpack_from(">h", key)[0] not in _OFFSET_KEYS:
        return None
    found_group, place = _string(key, 2)
    found_topic, place = _string(key, place)
    if (found_group, found_topic) != (group, topic):
        return None
    return int(struct.unpack_from(">i", key, place)[0])


def _value(value: bytes) -> tuple[int, str]:
    """Return the committed offset and the metadata of an OffsetCommitValue."""
    version, position = struct.unpack_from(">hq", value)
    place = 10 + (4 if version >= _WITH_LEADER_EPOCH else 0)
    if version > _FLEXIBLE:
        raise ValueError(f"OffsetCommitValue has the unknown version {version}; allowed: 0 to {_FLEXIBLE}")
    return position, (_compact if version == _FLEXIBLE else _string)(value, place)[0]


def _string(data: bytes, place: int) -> tuple[str, int]:
    """Return a string behind its length in 16 bits, and the place after it."""
    (length,) = struct.unpack_from(">h", data, place)
    return data[place + 2 : place + 2 + max(0, length)].decode(), place + 2 + max(0, length)


def _compact(data: bytes, place: int) -> tuple[str, int]:
    """Return a compact string, behind its length plus one as an unsigned varint, and the place after it."""
    length, place = segments.unsigned_varint(data, place)
    return data[place : place + max(0, length - 1)].decode(), place + max(0, length - 1)


def _owner(metadata: str) -> dict[str, int | None]:
    """Return worker, incarnation and transaction from a commit's metadata; None for each if no worker wrote it."""
    return dict(zip(("worker", "incarnation", "transaction"), _numbers(metadata), strict=True))


def _numbers(metadata: str) -> Iterator[int | None]:
    parts = metadata.rstrip("\0").split(",")  # confluent-kafka includes the terminating zero byte in the metadata
    whole = len(parts) == 3 and all(part.isdigit() for part in parts)
    return (int(part) if whole else None for part in (parts if whole else ("", "", "")))
