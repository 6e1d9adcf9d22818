"""Copy: each input gives one output, and outputs and committed offsets are in one transaction.

The output has the input's key and value, and goes to the partition of the input's number. Each worker has one producer.
A zombie's offsets are refused by the group's generation, and a successor waits while offsets are pending (KIP-447).

    input/3:  41 42 43     transaction: output/3 ← 41 42 43, committed offset 44

A fault within the transaction must leave both or neither; otherwise input 42 may have no output (`lost`) or two
(`duplicate`).

Variants of the same pipeline that are correct, too:

    copy-per-partition   a producer for each input partition, whose transactional id is bound to the partition, as in
                         the first design of exactly-once (KIP-98): the partition's next owner fences the previous one
                         by epoch
    copy-fixed           partitions by configuration, without a group's generation; the next incarnation of a worker has
                         its transactional id and fences it by epoch
    produce              no transactions: an idempotent producer with five requests in flight, which loses, duplicates
                         and reorders nothing as long as its process lives
"""

from collections.abc import Iterator
from dataclasses import replace

from onceproof.harness.model.workload import Claim, Output, Source, Wiring, Workload, one_on_each


def copy(source: Source, topic: str = "output") -> Iterator[Output]:
    """Yield a copy of the record, on the partition of the same number."""
    yield Output(topic=topic, partition=source.partition, key=source.key, value=source.value)


COPY = Workload(
    name="copy",
    about="Copy: one output for each input; outputs and committed offsets are in one transaction.",
    transform=copy,
    expected=one_on_each("output"),
)
PER_PARTITION = replace(
    COPY,
    name="copy-per-partition",
    about="Copy with a producer for each input partition, whose transactional id is bound to the partition.",
    wiring=Wiring(transactional_id_scope="partition", generation=False),
)
FIXED = replace(
    COPY,
    name="copy-fixed",
    about="Copy with partitions by configuration, fenced by the worker's transactional id alone.",
    wiring=Wiring(assignment="fixed", generation=False),
)
PRODUCE = replace(
    COPY,
    name="produce",
    about="Copy by an idempotent producer with five requests in flight, without transactions or group membership.",
    claim=Claim(transactional=False, position="group"),
    wiring=Wiring(transactional=False, position="after", assignment="fixed"),
)
