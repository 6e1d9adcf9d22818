"""W6: a chain of two services with a topic between; each reads, processes and writes in transactions of its own.

    input/3: 41     worker 0: middle/3 ← 41, position 42 of the first group
                    worker 1: output/3 ← 41, position of the second group in middle/3

What passes the topic between is judged by its end: an input must have one output there, whatever died on the way. So
records of `middle` may be deleted once the second service has committed behind them, as Kafka Streams does with its
repartition topics. That used to be dangerous: up to Kafka 2.4 a broker forgot a producer with its last record, and its
next one got UNKNOWN_PRODUCER_ID (KIP-360, KAFKA-7190, KAFKA-8710); current brokers keep what they know of it.

    N7  chain-read-uncommitted   the second service reads what the first has not committed   → aborted-read
"""

from collections.abc import Iterator
from dataclasses import replace

from onceproof.harness.model.workload import Output, Source, Wiring, Workload, one_on_each

_WRITES = ("middle", "output")


def chain(source: Source) -> Iterator[Output]:
    yield Output(topic=_WRITES[source.stage], partition=source.partition, key=source.key, value=source.value)


CHAIN = Workload(
    name="chain",
    about="A chain of two services with a topic between, each with transactions of its own.",
    transform=chain,
    expected=one_on_each("output"),
    topics=_WRITES,
    intermediate_topic="middle",
    rows=("W6",),
)
READ_UNCOMMITTED = replace(
    CHAIN,
    name="chain-read-uncommitted",
    about="Broken on purpose: the second service reads what the first has not committed.",
    wiring=Wiring(isolation="read_uncommitted"),
    rows=("N7",),
)
WORKLOADS = (CHAIN, READ_UNCOMMITTED)
