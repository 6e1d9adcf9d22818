"""Fan-out: each input gives one record on each of two topics, all in one transaction.

Each input is an order. It gives a record on `stock` and one on `payment`, with the input's key and value, in the
partition of the input's number.

    input/3:  order 41     transaction: stock/3 ← 41, payment/3 ← 41, committed offset 42

An order that is on `payment` but not on `stock` is found as `torn-transaction`. `fan-out-two-transactions` is a
negative control in which that happens: it writes the two topics in two transactions.
"""

from collections.abc import Iterator
from dataclasses import replace

from onceproof.harness.model.workload import Output, Source, Wiring, Workload, one_on_each

TOPICS = ("stock", "payment")


def fan_out(source: Source) -> Iterator[Output]:
    """Yield a copy of the record for each of the two topics."""
    for topic in TOPICS:
        yield Output(topic=topic, partition=source.partition, key=source.key, value=source.value)


FAN_OUT = Workload(
    name="fan-out",
    about="Fan-out: each order gives a record on stock and one on payment, in one transaction.",
    transform=fan_out,
    expected=one_on_each(*TOPICS),
    topics=TOPICS,
)
TWO_TRANSACTIONS = replace(
    FAN_OUT,
    name="fan-out-two-transactions",
    about="Broken on purpose: a fan-out with a transaction for each topic.",
    wiring=Wiring(each_topic=True),
)
