"""Read the offsets that groups committed, in the order of their partition of __consumer_offsets.

An admin client shows the last committed offset only; the log also shows the order of the commits, and which producer
committed them in which transaction. The workers put `worker,incarnation,transaction` into the metadata of each commit.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onceproof.verifiers.collect import internal, segments


def read(
    replica: Path, log: int, batches: Sequence[segments.Row], groups: Mapping[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table `commits` for one replica of the partition `log` of __consumer_offsets.

    `batches` are the replica's batches, as `segments.replica` returns them. `groups` maps a group to the topic that it
    reads; all other commits are left out. Without it, the rows of all groups are yielded, with `group`.
    """
    firsts = [batch[0] for batch in batches]
    for record in internal.records(replica, "offsets"):
        key, value = record["key"], record["value"]
        if value is None or (groups is not None and groups.get(key["group"]) != key["topic"]):
            continue
        batch = batches[bisect_right(firsts, record["first"]) - 1]
        yield {
            **({} if groups is not None else {"group": key["group"]}),
            "topic": key["topic"],
            "log": log,
            "offset": record["offset"],
            "partition": key["partition"],
            "position": value["offset"],
            **_owner(value["metadata"]),
            "committed_ms": value["commitTimestamp"],
            "producer_id": batch[3],
            "producer_epoch": batch[4],
            "transactional": batch[6],
            "marker": batch[-3],
            "fate": batch[-1],
        }


def _owner(metadata: str) -> dict[str, int | None]:
    """Return worker, incarnation and transaction from a commit's metadata; None for each if no worker wrote it."""
    return dict(zip(("worker", "incarnation", "transaction"), _numbers(metadata), strict=True))


def _numbers(metadata: str) -> Iterator[int | None]:
    parts = metadata.rstrip("\0").split(",")  # confluent-kafka includes the terminating zero byte in the metadata
    whole = len(parts) == 3 and all(part.isdigit() for part in parts)
    return (int(part) if whole else None for part in (parts if whole else ("", "", "")))
