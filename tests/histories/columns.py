"""The columns that collect adds to the logs of a drawn run: `marker` and `fate`, and what a commit has of its batch.

They follow from the headers, whatever was broken in these. test_segments compares them with collect's own.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from tests.histories.simulation import OFFSETS
from tests.rundata import Row, RunData


def ended(batches: Sequence[Row]) -> list[tuple[int | None, str]]:
    """The marker and the fate of each batch of a replica, in the order of the log."""
    found: list[tuple[int | None, str]] = []
    following: dict[int, Row] = {}
    for batch in reversed(batches):
        if batch["control"] is not None:
            following[batch["producer_id"]] = batch
            found.append((None, "control"))
        elif not batch["transactional"]:
            found.append((None, "visible"))
        elif end := following.get(batch["producer_id"]):
            found.append((end["first"], "visible" if end["control"] == "commit" else "aborted"))
        else:
            found.append((None, "open"))
    return found[::-1]


def fill(run: RunData) -> None:
    replicas: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in sorted(run.batches, key=lambda each: int(each["first"])):
        replicas[row["topic"], row["partition"], row["broker"]].append(row)
    for rows in replicas.values():
        for row, (marker, fate) in zip(rows, ended(rows), strict=True):
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
