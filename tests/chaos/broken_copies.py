"""Pipelines with one mistake each, as an edit of workloads/copy.py or workloads/sums.py could introduce it."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from onceproof.harness.model.workload import Output, Source
from onceproof.workloads.copy import COPY, copy
from onceproof.workloads.sums import SUMS, Sums

PLACE = (3, 1234)
FIRST = (3, 0)


def skips(place: tuple[int, int]) -> Callable[[Source], Iterator[Output]]:
    def transform(source: Source) -> Iterator[Output]:
        if (source.partition, source.offset) != place:
            yield from copy(source)

    return transform


def doubles(place: tuple[int, int]) -> Callable[[Source], Iterator[Output]]:
    def transform(source: Source) -> Iterator[Output]:
        yield from copy(source)
        if (source.partition, source.offset) == place:
            yield from copy(source)

    return transform


def skips_in_transaction(count: int) -> Callable[[Source], Iterator[Output]]:
    """Leave out the first record of worker 0's transaction number `count`."""
    skipped: list[tuple[int, int]] = []

    def transform(source: Source) -> Iterator[Output]:
        worker = sys._getframe(1).f_locals["self"]  # the calling loop, since a pipeline does not know its transaction
        place = (source.partition, source.offset)
        if worker._transaction == count and worker._child.config["worker"] == 0 and not skipped:
            skipped.append(place)
        if place not in skipped:
            yield from copy(source)

    return transform


class KeepsWhatWasAborted(Sums):
    """Restores the state of a partition once, and not again after an abort."""

    def restore(self, partition: int, records: Iterable[tuple[bytes, bytes]]) -> None:
        if partition not in self._sums:
            super().restore(partition, records)


SKIPS_ONE = replace(COPY, name="skips-one", transform=skips(PLACE))
DOUBLES_ONE = replace(COPY, name="doubles-one", transform=doubles(PLACE))
SKIPS_FIRST = replace(COPY, name="skips-first", transform=skips(FIRST))
DOUBLES_FIRST = replace(COPY, name="doubles-first", transform=doubles(FIRST))
SKIPS_AT_FAULT = replace(COPY, name="skips-at-fault", transform=skips_in_transaction(8))
KEEPS_WHAT_WAS_ABORTED = replace(SUMS, name="keeps-what-was-aborted", state=KeepsWhatWasAborted)


def prints(source: Source) -> Iterator[Output]:
    """Print what looks like an event and what is no text, and add to each value what a line of text cannot hold."""
    print('{"event": "outcome", "type": "ok"}')  # noqa: T201
    sys.stdout.buffer.write(b"\xff\x00 no text")
    sys.stdout.flush()
    yield Output(topic="output", partition=source.partition, key=source.key, value=source.value + b"\n\t\x00")


def raises(source: Source) -> Iterator[Output]:
    raise LookupError(f"no price of {source.offset // 1_000_000}")


def names_another_topic(source: Source) -> Iterator[Output]:
    for output in copy(source):
        yield replace(output, topic="ouput")


def leaves(source: Source) -> Iterator[Output]:
    os._exit(0)


PRINTS = replace(
    COPY, name="prints", transform=prints, identity="xxhash64(key, substring(value, 1, length(value) - 3))"
)
RAISES = replace(COPY, name="raises", transform=raises)
NAMES_ANOTHER_TOPIC = replace(COPY, name="names-another-topic", transform=names_another_topic)
LEAVES = replace(COPY, name="leaves", transform=leaves)
