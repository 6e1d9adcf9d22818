"""W4: fan-out; one input gives records on several topics, all or none.

Each order gives one record to the stock and one to the payment, with its key and value, in the partition of its number;
both and the position are one transaction.

    input/3:  order 41     transaction: stock/3 ← 41, payment/3 ← 41, position 42
    an order that is paid but not in stock would be `torn-transaction`

    N9  fan-out-two-transactions   a transaction for the payment, then one for the stock   → torn-transaction
"""

from collections.abc import Iterator
from dataclasses import replace

from onceproof.harness.model.workload import Output, Source, Wiring, Workload, one_on_each

TOPICS = ("stock", "payment")


def fan_out(source: Source) -> Iterator[Output]:
    for topic in TOPICS:
        yield Output(topic=topic, partition=source.partition, key=source.key, value=source.value)


FAN_OUT = Workload(
    name="fan-out",
    about="Fan-out: one order gives a record to the stock and one to the payment, in one transaction.",
    transform=fan_out,
    expected=one_on_each(*TOPICS),
    topics=TOPICS,
    rows=("W4",),
)
TWO_TRANSACTIONS = replace(
    FAN_OUT,
    name="fan-out-two-transactions",
    about="Broken on purpose: a transaction for each topic.",
    wiring=Wiring(each_topic=True),
    rows=("N9",),
)
WORKLOADS = (FAN_OUT, TWO_TRANSACTIONS)
