"""Bank: each input is a transfer between two accounts, whose balances live in the worker and in a changelog topic.

    input/3: transfer 41 of 42     debits/3 ← a3-1: 41 … 958      credits/3 ← a3-7: 41 … 1042
                                   balances/3 ← a3-1 958 a3-7 1042 (the changelog), committed offset 42

Each input partition has eight accounts, which begin with a balance of 0; balances may be negative. The two accounts and
the amount are functions of the transfer's number. Each balance must be the previous balance of the account, over both
topics, minus or plus the amount. So the sum of all balances stays 0, and a balance that was lost or counted twice is
found as `wrong-aggregate`. A record of the changelog must have the accounts and balances of the two outputs of its
transfer.
"""

from collections.abc import Iterable, Iterator

from onceproof.harness.model.workload import Aggregate, Output, Source, Workload
from onceproof.harness.record import payload
from onceproof.workloads.sums import AMOUNT, amount, part

ACCOUNTS = 8


def _accounts(partition: int, number: int) -> tuple[str, str]:
    """Return the account that pays and the account that is paid, which are always different."""
    payer = number % ACCOUNTS
    payee = (payer + 1 + number // ACCOUNTS % (ACCOUNTS - 1)) % ACCOUNTS
    return f"a{partition}-{payer}", f"a{partition}-{payee}"


class Bank:
    """The balances of each input partition, by account."""

    def __init__(self) -> None:
        self._balances: dict[int, dict[str, int]] = {}

    def restore(self, partition: int, records: Iterable[tuple[bytes, bytes]]) -> None:
        """Replace the partition's balances by those in its changelog's records (key, value), in their order."""
        balances: dict[str, int] = {}
        for _, value in records:
            _, _, payer, paid, payee, received = value.decode().split(" ")
            balances |= {payer: int(paid), payee: int(received)}
        self._balances[partition] = balances

    def process(self, source: Source) -> Iterator[Output]:
        """Make the transfer, and yield a record for each of the three topics; nothing for foreign inputs."""
        number = payload.number(source.value)
        if number is None:  # not an input that the generator sent
            return
        balances, moved = self._balances[source.partition], amount(number)
        payer, payee = _accounts(source.partition, number)
        paid = balances[payer] = balances.get(payer, 0) - moved
        received = balances[payee] = balances.get(payee, 0) + moved
        head = f"{number:012d} {payload.digest(source.key, source.value)}"
        for topic, account, rest in (
            ("debits", payer, str(paid)),
            ("credits", payee, str(received)),
            ("balances", payer, f"{payer} {paid} {payee} {received}"),
        ):
            yield Output(topic=topic, partition=source.partition, key=account.encode(), value=f"{head} {rest}".encode())


def _expected() -> str:
    """Return the expected outputs as Spark SQL: one record on each topic, whose key is an account.

    A record is identified by the digest of its input together with that key.
    """
    payer = f"number % {ACCOUNTS}"
    payee = f"({payer} + 1 + number div {ACCOUNTS} % {ACCOUNTS - 1}) % {ACCOUNTS}"
    return " UNION ALL ".join(
        f"SELECT '{topic}' AS topic, partition, number, "
        f"xxhash64(cast(concat('a', partition, '-', {account}) AS binary), digest) AS digest, input FROM inputs"
        for topic, account in (("debits", payer), ("credits", payee), ("balances", payer))
    )


def _name(index: int) -> str:
    """Return Spark SQL for the hash of the account in a part of the changelog's value; `index` from 0."""
    return f"xxhash64(cast(get(split(cast(value AS string), ' '), {index}) AS binary))"


BANK = Workload(
    name="bank",
    about="Bank: transfers between accounts with balances in a changelog topic, in one transaction.",
    expected=_expected(),
    topics=("debits", "credits", "balances"),
    identity=f"xxhash64(key, {part(1)})",
    state=Bank,
    changelog="balances",
    aggregate=Aggregate(
        total=part(2),
        amount=f"CASE topic WHEN 'debits' THEN -({AMOUNT}) WHEN 'credits' THEN {AMOUNT} END",
        over="CASE WHEN topic IN ('debits', 'credits') THEN 'account' END",
        state=f"xxhash64({_name(2)}, {part(3)}, {_name(4)}, {part(5)})",
        state_of=("debits", "credits"),
    ),
)
