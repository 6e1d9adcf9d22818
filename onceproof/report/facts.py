"""What the witnesses of a run say of the records at a range of offsets.

    input/3    0 to 31    log       batch 0 to 31 of input/3: producer 1000 epoch 0, sequence 0, visible, on broker1
    input/3    0 to 60    worker    worker-0.1 reported ok for transaction 1, which read input/3 0 to 60
    input/3    0 to 60    group     61 was committed by worker-0.1 in a transaction of producer 1 epoch 0, …

A run has few of these facts for its number of records, so a report contains all of them, and finds the story of a
record in them without the tables.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.dataset as ds

from onceproof.harness.record.events import Invoked, Outcome, PositionReset, RecordsDeleted
from onceproof.report.folder import Folder, Row

Place = tuple[str, int, int]  # the workload's own name of a topic, partition, offset


@dataclass(frozen=True, kw_only=True)
class Fact:
    """What a witness says of the records at the offsets `first` to `last` of a partition; `topic` is the workload's.

    `at` is in seconds since the start of the run, and None if the witness has no clock.
    """

    topic: str
    partition: int
    first: int
    last: int
    witness: str
    says: str
    at: float | None = None

    def tells_of(self, place: Place) -> bool:
        """Return whether it is about the record at a place."""
        topic, partition, offset = place
        return (topic, partition) == (self.topic, self.partition) and self.first <= offset <= self.last


def of(folder: Folder, place: Place | None = None, *, observed: bool = True) -> list[Fact]:
    """Return the facts about the record at a place, or all facts of a run, in the order in which a story tells them.

    Without `observed`, what the observers read is left out, which has a row for each output.
    """
    told = [
        *_log(folder, place),
        *_deleted(folder),
        *_read(folder),
        *(_observed(folder, place) if observed else ()),
        *_covered(folder, place),
    ]
    return [each for each in told if place is None or each.tells_of(place)]


def producer(row: Row) -> str:
    """Return the producer of a row in words."""
    if row["producer_id"] < 0:
        return "no producer id"
    return f"producer {row['producer_id']} epoch {row['producer_epoch']}"


def _log(folder: Folder, place: Place | None) -> Iterator[Fact]:
    """Yield the batches of the leaders' logs."""
    condition: Any = None
    if place is not None:
        inside = (ds.field("first") <= place[2]) & (ds.field("last") >= place[2])
        condition = _at(folder, place) & inside
    for batch in folder.rows("tables/batches.parquet", condition, ("topic", "partition", "first")):
        topic, partition = folder.role(batch["topic"]), batch["partition"]
        if (topic, partition) not in folder.leaders or folder.leaders[topic, partition] != batch["broker"]:
            continue
        kind = (
            f"{batch['control']} marker, " if batch["control"] else "transactional, " if batch["transactional"] else ""
        )
        ends = f", and the marker at {batch['marker']}" if batch["marker"] is not None else ""
        says = (
            f"batch {batch['first']} to {batch['last']} of {topic}/{partition}: {producer(batch)}, sequence "
            f"{batch['sequence']}, {kind}{batch['fate']}{ends}, on {batch['broker']}"
        )
        at = {"first": batch["first"], "last": batch["last"]}
        yield Fact(topic=topic, partition=partition, **at, witness="log", says=says)


def _deleted(folder: Folder) -> Iterator[Fact]:
    """Yield the deletions of records."""
    for event in folder.events.of(RecordsDeleted):
        for each in event.partitions:
            says = f"removed: the log of {event.topic}/{each.partition} starts at {each.low_watermark} now"
            yield Fact(
                topic=event.topic,
                partition=each.partition,
                first=0,
                last=each.low_watermark - 1,
                witness="log",
                says=says,
                at=event.at - folder.start,
            )


def _read(folder: Folder) -> Iterator[Fact]:
    """Yield the transactions that read inputs, and resets of a position that passed some."""
    for event in folder.events:
        if isinstance(event, Invoked | Outcome) and event.source.startswith("worker-"):
            if folder.workload.intermediate_topic and event.worker % 2:  # it reads the intermediate topic
                continue
            told = "is about to commit" if isinstance(event, Invoked) else f"reported {event.type} for"
            who = f"{event.source}.{event.incarnation} {told} transaction {event.transaction}"
            for partition, (first, after) in event.sources.items():
                yield Fact(
                    topic="input",
                    partition=int(partition),
                    first=first,
                    last=after - 1,
                    witness="worker",
                    says=f"{who}, which read input/{partition} {first} to {after - 1}",
                    at=event.at - folder.start,
                )
        if isinstance(event, PositionReset):
            says = f"{event.source}.{event.incarnation} was reset from {event.expected} to {event.found}, past it"
            yield Fact(
                topic="input",
                partition=event.partition,
                first=event.expected,
                last=event.found - 1,
                witness="worker",
                says=says,
                at=event.at - folder.start,
            )


def _observed(folder: Folder, place: Place | None) -> Iterator[Fact]:
    """Yield what the observers read during the run; offsets that one poll returned are one fact."""
    condition = None if place is None else _at(folder, place) & (ds.field("offset") == place[2])
    order = ("topic", "partition", "offset")
    rows = folder.rows("ledger/*/observed-*.parquet", condition, order, (*order, "at"))
    begun = 0
    for index, row in enumerate(rows):
        after = rows[index + 1] if index + 1 < len(rows) else None
        if after is not None and _one_poll(row, after):
            continue
        yield Fact(
            topic=folder.role(row["topic"]),
            partition=row["partition"],
            first=rows[begun]["offset"],
            last=row["offset"],
            witness="observer",
            says="read it under read_committed",
            at=row["at"] - folder.start,
        )
        begun = index + 1


def _one_poll(row: Row, after: Row) -> bool:
    same = all(row[name] == after[name] for name in ("topic", "partition", "at"))
    return same and bool(after["offset"] == row["offset"] + 1)


def _covered(folder: Folder, place: Place | None) -> Iterator[Fact]:
    """Yield, for each range of inputs, the first visible commit that covers it."""
    condition = (ds.field("topic") == folder.topic("input")) & (ds.field("fate") == "visible")
    if place is not None:
        condition = condition & (ds.field("partition") == place[1])
    covered: dict[int, int] = {}
    for row in folder.rows("tables/commits.parquet", condition, ("log", "offset")):
        partition, position = row["partition"], row["position"]
        before = covered.get(partition, 0)
        if position <= before:
            continue
        covered[partition] = position
        who = "" if row["worker"] is None else f" by worker-{row['worker']}.{row['incarnation']}"
        how = f"in a transaction of {producer(row)}" if row["transactional"] else "outside of a transaction"
        at = f"__consumer_offsets/{row['log']} offset {row['offset']}"
        yield Fact(
            topic="input",
            partition=partition,
            first=before,
            last=position - 1,
            witness="group",
            says=f"{position} was committed on input/{partition}{who} {how}, at {at}, and covers it",
        )


def _at(folder: Folder, place: Place) -> Any:
    return (ds.field("topic") == folder.topic(place[0])) & (ds.field("partition") == place[1])


def without_cover(folder: Folder) -> bool:
    """Return whether an input that no commit covers is worth a word: the pipeline commits its positions in a group."""
    return folder.workload.claim.position in ("in-transaction", "transactional", "group")


def ids_of(folder: Folder) -> Sequence[tuple[str, str]]:
    """Return each record of the coordinators' logs: the transactional id, and what the record says."""
    return [
        (
            row["transactional_id"],
            f"__transaction_state/{row['log']} offset {row['offset']}: {row['state']}, {producer(row)}"
            + (f", {', '.join(sorted(map(folder.role, row['partitions'])))}" if row["partitions"] else ""),
        )
        for row in folder.rows("tables/states.parquet", None, ("log", "offset"))
    ]
