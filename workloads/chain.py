"""Chain: two services with an intermediate topic; each reads, processes and writes in transactions of its own.

    input/3: 41     worker 0: middle/3 ← 41, committed offset 42 of the first group
                    worker 1: output/3 ← 41, committed offset of the second group in middle/3

The intermediate topic is checked by the end of the chain only: each input must have one output there, whatever failed
on the way. So records of `middle` may be deleted once the second service has committed offsets beyond them, as Kafka
Streams does with its repartition topics. Up to Kafka 2.4, a broker forgot a producer together with its last record and
refused its next one with UNKNOWN_PRODUCER_ID (KIP-360, KAFKA-7190, KAFKA-8710); later brokers keep the producer's
state.

`chain-read-uncommitted` is a negative control: its second service reads under `read_uncommitted`, which must be found
as `aborted-read`.
"""

from collections.abc import Iterator
from dataclasses import replace

from onceproof.harness.model.workload import Output, Source, Wiring, Workload, one_on_each

_WRITES = ("middle", "output")


def chain(source: Source) -> Iterator[Output]:
    """Yield a copy of the record, on `middle` from the input and on `output` from `middle`."""
    yield Output(topic=_WRITES[source.stage], partition=source.partition, key=source.key, value=source.value)


CHAIN = Workload(
    name="chain",
    about="A chain of two services with an intermediate topic, each with transactions of its own.",
    transform=chain,
    expected=one_on_each("output"),
    topics=_WRITES,
    intermediate_topic="middle",
)
READ_UNCOMMITTED = replace(
    CHAIN,
    name="chain-read-uncommitted",
    about="Broken on purpose: the second service of a chain reads under read_uncommitted.",
    wiring=Wiring(isolation="read_uncommitted"),
)
