"""The columns that collect adds to the logs of a drawn run: `marker` and `fate`, and what a commit has of its batch.

They are made by collect's own code from the headers, whatever was broken in these.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from onceproof.verifiers.collect import segments
from tests.histories.simulation import OFFSETS
from tests.rundata import Row, RunData

_HEADER = (
    "first",
    "last",
    "records",
    "producer_id",
    "producer_epoch",
    "sequence",
    "transactional",
    "control",
    "crc",
    "coordinator_epoch",
    "intact",
)


class _Segments:
    """The folder of a replica, with one segment."""

    def glob(self, _: str) -> list["_Segments"]:
        return [self]

    def __lt__(self, _: "_Segments") -> bool:
        return False


def fill(run: RunData) -> None:
    replicas: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in sorted(run.batches, key=lambda each: int(each["first"])):
        replicas[row["topic"], row["partition"], row["broker"]].append(row)
    for rows in replicas.values():

        def batches(_: Path, *, crc: bool = True, rows: list[Row] = rows) -> Iterator[tuple[Any, ...]]:
            assert crc
            yield from (tuple(row[name] for name in _HEADER) for row in rows)

        with patch.object(segments, "batches", batches):
            read = segments.replica(cast(Path, _Segments()))
        for row, (*_, marker, _, fate) in zip(rows, read, strict=True):
            row.update(marker=marker, fate=fate)
    _commits(run)


def _commits(run: RunData) -> None:
    """A committed offset is a record of its batch, and gone with it."""
    leader = run.internal[0]["leader"]
    held = {
        offset: row
        for row in run.batches
        if (row["topic"], row["broker"]) == (OFFSETS, leader) and row["control"] is None
        for offset in range(row["first"], row["last"] + 1)
    }
    for commits in (run.commits, run.other_commits):
        commits[:] = [each for each in commits if each["offset"] in held]
        for each in commits:
            names = ("producer_id", "producer_epoch", "transactional", "marker", "fate")
            each.update({name: held[each["offset"]][name] for name in names})
