"""A pipeline of one's own, for a recorded run: each input gives two equal records on one topic."""

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
