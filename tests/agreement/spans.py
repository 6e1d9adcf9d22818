"""The batches of each producer up to its markers, as the leaders have them, to be changed on every replica."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from tests.rundata import Row, RunData

OFFSETS = "__consumer_offsets"
Lane = tuple[str, int, int]  # topic, partition, producer id


class NoSuchLog(Exception):
    """No brokers could have written a log with these fates."""


class Span:
    """The batches of a producer up to its next marker, on the leader; `marker` is a control batch or None."""

    def __init__(self) -> None:
        self.data: list[Row] = []
        self.marker: Row | None = None
        self.number = 0  # of the markers of its lane

    @property
    def kind(self) -> str | None:
        kind: str | None = None if self.marker is None else self.marker["control"]
        return kind


def lane_of(batch: Row) -> Lane:
    return batch["topic"], batch["partition"], batch["producer_id"]


def _leaders(run: RunData) -> dict[tuple[str, int], str]:
    return {(each["topic"], each["partition"]): each["leader"] for each in [*run.partitions, *run.internal]}


def of_leaders(run: RunData, topic: str | None = None) -> Iterator[Row]:
    """The leaders' batches (of one topic), in the order of their offsets."""
    leaders = _leaders(run)
    some = run.batches if topic is None else [each for each in run.batches if each["topic"] == topic]
    mine = [each for each in some if leaders.get((each["topic"], each["partition"])) == each["broker"]]
    yield from sorted(mine, key=lambda each: int(each["first"]))


def spans_of(run: RunData) -> dict[Lane, list[Span]]:
    found: dict[Lane, list[Span]] = defaultdict(list)
    current: dict[Lane, Span] = {}
    markers: dict[Lane, int] = defaultdict(int)
    for batch in of_leaders(run):
        lane = batch["topic"], batch["partition"], batch["producer_id"]
        if not batch["transactional"] and batch["control"] is None:
            continue
        if lane not in current:
            current[lane] = Span()
            found[lane].append(current[lane])
        if batch["control"] is None:
            current[lane].data.append(batch)
        else:
            current[lane].marker, current[lane].number = batch, markers[lane]
            markers[lane] += 1
            del current[lane]
    return found


def by_lane(run: RunData) -> dict[Lane, list[Row]]:
    found: dict[Lane, list[Row]] = defaultdict(list)
    for each in (*run.commits, *run.other_commits):
        if each.get("transactional", True):
            found[OFFSETS, each["log"], each["producer_id"]].append(each)
    return found


def everywhere(run: RunData, batch: Row) -> list[Row]:
    """A batch on each replica."""
    same = ("topic", "partition", "first")
    return [each for each in run.batches if all(each[key] == batch[key] for key in same)]


def held(run: RunData) -> dict[tuple[int, Any], Row]:
    """The batch at each offset of the groups' logs."""
    return {
        (each["partition"], offset): each
        for each in of_leaders(run, OFFSETS)
        for offset in range(each["first"], each["last"] + 1)
    }
