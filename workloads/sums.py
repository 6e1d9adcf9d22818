"""Sums: a running sum for each key, whose state is kept in a changelog topic, all in one transaction.

    input/3:  k7 ← 41     transaction: sums/3 ← k7: 41 … 310, changelog/3 ← the same, committed offset 42

The state is in the worker's memory. It is restored from the changelog when a partition is assigned, and after each
abort, since the amounts of an aborted transaction must be forgotten. The changelog is read up to the high watermark and
not to the last stable offset: the transaction of the partition's previous owner may be decided, so that its offsets can
be fetched, while its marker is not yet written. A state without that transaction gives a `wrong-aggregate`.

A record is identified by its key together with the digest of its input. The changelog is a topic like the other: each
total in it must be right.
"""

from collections.abc import Iterable, Iterator

from onceproof.harness.model.workload import Aggregate, Output, Source, Workload
from onceproof.harness.record import payload

TOPICS = ("sums", "changelog")
AMOUNT = "number % 100 + 1"  # the function `amount` as Spark SQL


def amount(number: int) -> int:
    """Return the amount that the input of this number adds to its key's sum, 1 to 100."""
    return number % 100 + 1


def part(index: int) -> str:
    """Return Spark SQL for a number in an output's value, whose parts are separated by spaces; `index` from 0."""
    return f"try_cast(get(split(cast(value AS string), ' '), {index}) AS bigint)"


class Sums:
    """The running sums of each input partition, by key."""

    def __init__(self) -> None:
        self._sums: dict[int, dict[bytes, int]] = {}

    def restore(self, partition: int, records: Iterable[tuple[bytes, bytes]]) -> None:
        """Replace the partition's sums by those in its changelog's records (key, value), in their order."""
        self._sums[partition] = {key: int(value.rsplit(b" ", 1)[1]) for key, value in records}

    def process(self, source: Source) -> Iterator[Output]:
        """Add the input's amount, and yield the new sum for both topics; nothing for foreign inputs."""
        number = payload.number(source.value)
        if number is None:  # not an input that the generator sent
            return
        sums = self._sums[source.partition]
        total = sums[source.key] = sums.get(source.key, 0) + amount(number)
        value = f"{number:012d} {payload.digest(source.key, source.value)} {total}".encode()
        for topic in TOPICS:
            yield Output(topic=topic, partition=source.partition, key=source.key, value=value)


def _expected() -> str:
    """Return the expected outputs as Spark SQL: one record on each topic, with the key of its input."""
    return " UNION ALL ".join(
        f"SELECT '{topic}' AS topic, partition, number, xxhash64(grouping, digest) AS digest, input FROM inputs"
        for topic in TOPICS
    )


SUMS = Workload(
    name="sums",
    about="Aggregation: a running sum for each key with its state in a changelog topic, in one transaction.",
    expected=_expected(),
    topics=TOPICS,
    identity=f"xxhash64(xxhash64(key), {part(1)})",
    state=Sums,
    changelog="changelog",
    aggregate=Aggregate(total=part(2), amount=AMOUNT),
)
