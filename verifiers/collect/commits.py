"""Read the offsets that groups committed, in the order of their partition of __consumer_offsets.

An admin client shows the last committed offset only; the log also shows the order of the commits, and which producer
committed them in which transaction. The workers put `worker,incarnation,transaction` into the metadata of each commit.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onceproof.verifiers.collect import internal

Row = dict[str, Any]
_OPEN = "open"


def read(replica: Path, log: int, groups: Mapping[str, str] | None = None) -> Iterator[Row]:
    """Yield the rows of the table `commits` for one replica of the partition `log` of __consumer_offsets.

    `groups` maps a group to the topic that it reads; all other commits are left out. Without it, there are the rows of
    all groups, with `group`. Those from the first open transaction on are in memory. Raises ValueError, with the
    segment and the reason, when a segment is damaged.
    """
    waiting: deque[Row] = deque()
    undecided: dict[int, list[Row]] = defaultdict(list)
    for record in internal.records(replica, "offsets"):
        if "commit" in record:
            fate = "visible" if record["commit"] else "aborted"
            for row in undecided.pop(record["producerId"], ()):
                row |= {"marker": record["offset"], "fate": fate}
        elif _wanted(record, groups):
            row = {**({} if groups is not None else {"group": record["key"]["group"]}), **_row(record, log)}
            waiting.append(row)
            if record["transactional"]:  # speed: no marker decides the others
                undecided[record["producerId"]].append(row)
        while waiting and waiting[0]["fate"] != _OPEN:
            yield waiting.popleft()
    yield from waiting


def _wanted(record: Mapping[str, Any], groups: Mapping[str, str] | None) -> bool:
    key = record["key"]
    return record["value"] is not None and (groups is None or groups.get(key["group"]) == key["topic"])


def _row(record: Mapping[str, Any], log: int) -> Row:
    key, value = record["key"], record["value"]
    return {
        "topic": key["topic"],
        "log": log,
        "offset": record["offset"],
        "partition": key["partition"],
        "position": value["offset"],
        **_owner(value["metadata"]),
        "committed_ms": value["commitTimestamp"],
        "producer_id": record["producerId"],
        "producer_epoch": record["producerEpoch"],
        "transactional": record["transactional"],
        "marker": None,
        "fate": _OPEN if record["transactional"] else "visible",
    }


def _owner(metadata: str) -> dict[str, int | None]:
    """Return worker, incarnation and transaction from a commit's metadata; None for each if no worker wrote it."""
    return dict(zip(("worker", "incarnation", "transaction"), _numbers(metadata), strict=True))


def _numbers(metadata: str) -> Iterator[int | None]:
    parts = metadata.rstrip("\0").split(",")  # confluent-kafka includes the terminating zero byte in the metadata
    whole = len(parts) == 3 and all(part.isdigit() for part in parts)
    return (int(part) if whole else None for part in (parts if whole else ("", "", "")))
