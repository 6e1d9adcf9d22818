"""W3: aggregation; a running sum for each key, its state in a changelog topic, all in one transaction.

    input/3:  k7 ← 41     transaction: sums/3 ← k7: 41 … 310, changelog/3 ← the same, position 42

The state is in the worker's memory. It is taken up again from the changelog when a partition is assigned and after each
abort, since what an aborted transaction added must be forgotten. Up to the high watermark, not to the last stable
offset: the transaction of the partition's owner before may be decided, so that the position can be fetched, and its
marker not yet be there. A state that misses it is `wrong-aggregate`. (That an output's key is its input's nobody
judges: an output does not carry its input's value, and the ledger has the digest of both together.)
"""

from collections.abc import Iterable, Iterator

from onceproof.harness.model.workload import Aggregate, Output, Source, Workload, one_on_each
from onceproof.harness.record import payload

TOPICS = ("sums", "changelog")


AMOUNT = "number % 100 + 1"  # `amount` as Spark SQL


def amount(number: int) -> int:
    return number % 100 + 1


def part(index: int) -> str:
    """Spark SQL: a number in an output's value, whose parts have spaces between."""
    return f"try_cast(get(split(cast(value AS string), ' '), {index}) AS bigint)"


class Sums:
    """The running sums, for each partition by key."""

    def __init__(self) -> None:
        self._sums: dict[int, dict[bytes, int]] = {}

    def restore(self, partition: int, records: Iterable[tuple[bytes, bytes]]) -> None:
        self._sums[partition] = {key: int(value.rsplit(b" ", 1)[1]) for key, value in records}

    def process(self, source: Source) -> Iterator[Output]:
        number = payload.number(source.value)
        if number is None:  # no input of ours
            return
        sums = self._sums[source.partition]
        total = sums[source.key] = sums.get(source.key, 0) + amount(number)
        value = f"{number:012d} {payload.digest(source.key, source.value)} {total}".encode()
        for topic in TOPICS:
            yield Output(topic=topic, partition=source.partition, key=source.key, value=value)


SUMS = Workload(
    name="sums",
    about="Aggregation: a running sum for each key, its state in a changelog topic, in one transaction.",
    expected=one_on_each(*TOPICS),
    topics=TOPICS,
    identity=part(1),
    state=Sums,
    changelog="changelog",
    aggregate=Aggregate(total=part(2), amount=AMOUNT),
    rows=("W3",),
)
WORKLOADS = (SUMS,)
