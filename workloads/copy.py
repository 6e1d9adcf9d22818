"""W2, W8: read-process-write copy, one to one; output and position in one transaction, one producer a worker.

Each input gives one output with its key and value, in the partition of its number. One producer a worker, fenced by the
group's generation (KIP-447), pending offsets unstable.

    input/3:  41 42 43     transaction: output/3 ← 41 42 43, position 44
    a fault between the two leaves both or neither; `lost` or `duplicate` would be 42 missing, or there twice

The same pipeline in other right ways:

    W7  copy-per-partition   a producer for each input partition, its transactional id bound to the partition: the first
                             design of exactly-once (KIP-98); who gets the partition fences who had it, by epoch
        copy-fixed           partitions by configuration, without a group's fencing; a successor of the same worker has
                             its transactional id, and fences it by epoch
    W1  produce              no transaction at all: an idempotent producer with five requests in flight, by which
                             nothing is lost, doubled or reordered as long as its process lives
"""

from collections.abc import Iterator
from dataclasses import replace

from onceproof.harness.model.workload import Output, Source, Wiring, Workload, one_on_each


def copy(source: Source) -> Iterator[Output]:
    yield Output(topic="output", partition=source.partition, key=source.key, value=source.value)


COPY = Workload(
    name="copy",
    about="Copy, one to one: output and position in one transaction.",
    transform=copy,
    expected=one_on_each("output"),
    rows=("W2", "W8"),
)
PER_PARTITION = replace(
    COPY,
    name="copy-per-partition",
    about="Copy with a producer for each input partition, its transactional id bound to the partition.",
    wiring=Wiring(transactional_id_scope="partition", generation=False),
    rows=("W7",),
)
FIXED = replace(
    COPY,
    name="copy-fixed",
    about="Copy with partitions by configuration; fenced by the worker's transactional id alone.",
    wiring=Wiring(assignment="fixed", generation=False),
    rows=("W2",),
)
PRODUCE = replace(
    COPY,
    name="produce",
    about="Idempotent produce alone: no transaction, no group, up to five requests in flight.",
    wiring=Wiring(transactional=False, position="after", assignment="fixed"),
    rows=("W1",),
)
WORKLOADS = (COPY, PER_PARTITION, FIXED, PRODUCE)
