"""Pipelines of one's own, for recorded runs: each input gives two equal records on one topic."""

from collections.abc import Iterator

from onceproof.harness.model.workload import Output, Source, Workload, one_on_each


def twice(source: Source) -> Iterator[Output]:
    for _ in range(2):
        yield Output(topic="output", partition=source.partition, key=source.key, value=source.value)


TWICE = Workload(
    name="twice",
    about="Each input gives two equal records.",
    transform=twice,
    expected=f"{one_on_each('output')} UNION ALL {one_on_each('output')}",
)

# Of a pair of inputs that the recorded run has in one transaction: number → the partition of its second record.
PAIR = {47: 1, 23: 0}
_TO = " ".join(f"WHEN {number} THEN {partition}" for number, partition in PAIR.items())
SPREAD = Workload(
    name="spread",
    about="Each input gives two equal records, and the second one goes to another partition for a pair of inputs.",
    transform=twice,
    expected=f"{one_on_each('output')} UNION ALL "
    f"SELECT 'output' AS topic, CASE number {_TO} ELSE partition END AS partition, number, digest, input FROM inputs",
)
