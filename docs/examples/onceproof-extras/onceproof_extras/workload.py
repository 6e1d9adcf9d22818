"""Orders become invoices; an invoice of 100 or more goes to a topic of its own, for review.

    input/3:  order 41 (net 42)     transaction: invoices/3 ← 41: 49, committed offset 42
              order 97 (net 98)     transaction: review/3 ← 97: 116, committed offset 98

The invoice carries the digest of its order and the amount with tax, and both are compared with what is expected: an
invoice with a wrong amount is `corrupted`. An invoice in the wrong topic is a `phantom` there, and its order is `lost`.
"""

from collections.abc import Iterator

from onceproof.harness.model.workload import Output, Source, Workload
from onceproof.harness.record import payload

# The same amount twice: for the worker in Python, for the verdict in Spark SQL. Both divide integers.
GROSS = "(number % 100 + 1) * 119 div 100"


def gross(number: int) -> int:
    """The amount of an order with tax, in whole units."""
    return (number % 100 + 1) * 119 // 100


def invoice(source: Source) -> Iterator[Output]:
    """One invoice for each order."""
    number = payload.number(source.value)
    if number is None:  # not a record of the generator
        return
    amount = gross(number)
    value = f"{number:012d} {payload.digest(source.key, source.value)} {amount}"
    topic = "review" if amount >= 100 else "invoices"
    yield Output(topic=topic, partition=source.partition, key=source.key, value=value.encode())


def _part(index: int) -> str:
    """Spark SQL: one of the integers in an invoice, which are separated by spaces."""
    return f"try_cast(get(split(cast(value AS string), ' '), {index}) AS bigint)"


INVOICES = Workload(
    name="invoices",
    about="Each order gives one invoice, with tax; invoices of 100 or more go to a topic of their own.",
    transform=invoice,
    topics=("invoices", "review"),
    expected=f"""
        SELECT CASE WHEN {GROSS} >= 100 THEN 'review' ELSE 'invoices' END AS topic,
               partition, number, xxhash64(digest, {GROSS}) AS digest, input
        FROM inputs
    """,
    identity=f"xxhash64({_part(1)}, {_part(2)})",
)
