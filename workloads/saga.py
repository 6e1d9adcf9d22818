"""Saga: an order takes two steps in two services, and a payment that is refused undoes the first step.

    input/3: 41     orders: goods of 41 are reserved                       transaction of the first service
    orders/3: 41    payment: 41 charged,  stock: 41 taken                  transaction of the second service
    orders/3: 43    payment: 43 refused,  stock: 43 returned               the compensation

Each step is a transaction of its own, and the reservation is visible before the payment is known. Whatever fails on the
way, each order must end with both steps done or with both undone, once. Payments of every tenth order are refused. The
pattern is from Garcia-Molina and Salem, "Sagas" (SIGMOD 1987).

    saga-uncompensated    a refused payment does not return the goods                                         → lost

An order that is half done is no `torn-transaction`: each transaction is whole, and what is missing is an output.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from onceproof.harness.model.workload import Output, Source, Workload
from onceproof.harness.record import payload
from onceproof.workloads.sums import part

_STEPS = {"payment": ("charged", "refused"), "stock": ("taken", "returned")}
_REFUSED = 3  # the last digit of orders whose payment is refused


def saga(source: Source, *, compensates: bool = True) -> Iterator[Output]:
    """Yield the reservation of an order, or the result of its payment with what follows for the goods."""
    number = payload.number(source.value)
    if source.stage == 0 or number is None:
        yield Output(topic="orders", partition=source.partition, key=source.key, value=source.value)
        return
    refused = number % 10 == _REFUSED
    for topic, ends in _STEPS.items():
        if topic == "stock" and refused and not compensates:
            continue
        value = f"{number:012d} {payload.digest(source.key, source.value)} {ends[refused]}".encode()
        yield Output(topic=topic, partition=source.partition, key=source.key, value=value)


def _expected() -> str:
    """Return the expected outputs as Spark SQL: one on each topic, which says how that step ended."""
    return " UNION ALL ".join(
        f"SELECT '{topic}' AS topic, partition, number, input, "
        f"xxhash64(digest, if(number % 10 = {_REFUSED}, '{refused}', '{done}')) AS digest FROM inputs"
        for topic, (done, refused) in _STEPS.items()
    )


SAGA = Workload(
    name="saga",
    about="Saga: two steps of an order in two services; a refused payment undoes the first step.",
    transform=saga,
    expected=_expected(),
    topics=("orders", *_STEPS),
    intermediate_topic="orders",
    identity=f"xxhash64({part(1)}, get(split(cast(value AS string), ' '), 2))",
)
UNCOMPENSATED = replace(
    SAGA,
    name="saga-uncompensated",
    about="Broken on purpose: a refused payment does not undo the first step of its order.",
    transform=partial(saga, compensates=False),
)
