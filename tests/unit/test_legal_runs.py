"""What Kafka, its clients and right applications may do is no anomaly; what is only like it is one."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from onceproof.verifiers.verify import verify
from tests.rundata import STRANGER
from tests.unit.good_run import GoodRun


def assigned_in_its_transaction(run: GoodRun, *, sent: float) -> None:
    """A member was assigned a partition while its transaction was open, and read from it before it sent the offsets."""
    for event in run.events:
        if event["event"] == "assigned":
            event["at"] = event["t"] = 2.05
        if event["event"] == "invoke":
            event["sent"] = sent


_NOBODY = {"worker": None, "incarnation": None, "transaction": None, "producer_id": -1, "producer_epoch": -1}


def committed_outside_first(run: GoodRun, *, position: int) -> None:
    """A consumer commits the offset at which it begins, outside of any transaction."""
    first = next(commit for commit in run.commits if commit["partition"] == 0)
    outside = {"offset": 0, "position": position, "transactional": False, "marker": None}
    run.commits.insert(0, {**first, **outside, **_NOBODY})


def committed_outside_last(run: GoodRun, *, back: int) -> None:
    """Somebody commits an offset `back` below the last one, outside of any transaction."""
    last = max((commit for commit in run.commits if commit["partition"] == 0), key=lambda commit: commit["offset"])
    moved = {"offset": last["offset"] + 2, "position": last["position"] - back}
    run.commits.append({**last, **moved, "transactional": False, "marker": None, **_NOBODY})
    run.positions[0] = moved["position"]


def aborted_from_the_middle(run: GoodRun) -> None:
    """The first batch of a producer has not the sequence number 0, since the one before it was refused."""
    run.insert_aborted("output", 0, 5)
    for batch in run.batches:
        if batch["producer_id"] == STRANGER and batch["control"] is None:
            batch["sequence"] = 7


@pytest.mark.parametrize(
    ("change", "keys", "classes"),
    [
        (assigned_in_its_transaction, {"sent": 2.08}, set()),
        (assigned_in_its_transaction, {"sent": 2.04}, {"zombie-write"}),
        (committed_outside_first, {"position": 0}, set()),
        (committed_outside_first, {"position": 5}, {"unprotected"}),
        (committed_outside_last, {"back": 0}, set()),
        (committed_outside_last, {"back": 1}, {"unprotected", "offset-divergence"}),
        (aborted_from_the_middle, {}, set()),
    ],
)
def test_what_is_legal_is_no_anomaly(
    spark: SparkSession, tmp_path: Path, change: Callable[..., None], keys: dict[str, object], classes: set[str]
) -> None:
    run = GoodRun()
    change(run, **keys)
    results = verify(run.write(tmp_path / "run"))
    assert {each.cls for each in results.findings} == classes
    assert results.verdict == ("invalid" if classes else "valid"), results.reasons
