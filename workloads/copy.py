"""W2, W8: read-process-write copy, one to one; output and position in one transaction, one producer a worker.

Each input gives one output with its key and value, in the partition of its number. One producer a worker, fenced by the
group's generation (KIP-447), pending offsets unstable.

    input/3:  41 42 43     transaction: output/3 ← 41 42 43, position 44
    a fault between the two leaves both or neither; `lost` or `duplicate` would be 42 missing, or there twice

The negative controls are the same pipeline with one switch turned:

    N1  copy-at-least-once   position committed after the output, no transaction   → duplicate
    N8  copy-no-seek-back    goes on after an abort where it was                   → lost
"""

from collections.abc import Iterator
from dataclasses import replace

from harness.protocols import Output, Source, Workload, one_on_each


def copy(source: Source) -> Iterator[Output]:
    yield Output(topic="output", partition=source.partition, key=source.key, value=source.value)


COPY = Workload(
    name="copy",
    about="Copy, one to one: output and position in one transaction.",
    transform=copy,
    expected=one_on_each("output"),
    rows=("W2", "W8"),
)
AT_LEAST_ONCE = replace(
    COPY,
    name="copy-at-least-once",
    about="Broken on purpose: position committed after the output, without a transaction.",
    transactional=False,
    rows=("N1",),
)
NO_SEEK_BACK = replace(
    COPY,
    name="copy-no-seek-back",
    about="Broken on purpose: after an abort it goes on where it was instead of seeking back.",
    seek_back=False,
    rows=("N8",),
)
WORKLOADS = (COPY, AT_LEAST_ONCE, NO_SEEK_BACK)
