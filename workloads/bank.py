"""W5: bank; each input is a transfer between two accounts. The total never changes, no balance is invented.

    input/3:  transfer 41 (amount 42)     debits/3  ← a3-1: 41 … 958      credits/3 ← a3-7: 41 … 1042
                                          balances/3 ← a3-1 958 a3-7 1042 (the changelog), position 42

Accounts belong to an input partition, eight to each, and begin with nothing; a balance may be negative, since what
matters is that it is right. The two accounts and the amount are functions of the transfer's number. Each record's
balance must be the one before it of that account, over both topics, plus or minus the amount: so every transfer moves
the sum of all balances by nothing, and the sum of the last ones is nothing. Of `balances` the accounts are judged; what
it says counts when a worker takes it up, and is wrong in its next transfer then.
"""

from collections.abc import Iterable, Iterator

from onceproof.harness.model.workload import Aggregate, Output, Source, Workload
from onceproof.harness.record import payload
from onceproof.workloads.sums import AMOUNT, amount, part

ACCOUNTS = 8


def _accounts(partition: int, number: int) -> tuple[str, str]:
    """Who pays, and who is paid: never the same."""
    payer = number % ACCOUNTS
    payee = (payer + 1 + number // ACCOUNTS % (ACCOUNTS - 1)) % ACCOUNTS
    return f"a{partition}-{payer}", f"a{partition}-{payee}"


class Bank:
    """The balances, for each partition by account."""

    def __init__(self) -> None:
        self._balances: dict[int, dict[str, int]] = {}

    def restore(self, partition: int, records: Iterable[tuple[bytes, bytes]]) -> None:
        balances: dict[str, int] = {}
        for _, value in records:
            _, _, payer, paid, payee, received = value.decode().split(" ")
            balances |= {payer: int(paid), payee: int(received)}
        self._balances[partition] = balances

    def process(self, source: Source) -> Iterator[Output]:
        number = payload.number(source.value)
        if number is None:  # no input of ours
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
    """One record on each topic, whose key is the account: identity is the input's digest, and that key."""
    payer = f"number % {ACCOUNTS}"
    payee = f"({payer} + 1 + number div {ACCOUNTS} % {ACCOUNTS - 1}) % {ACCOUNTS}"
    return " UNION ALL ".join(
        f"SELECT '{topic}' AS topic, partition, number, "
        f"xxhash64(cast(concat('a', partition, '-', {account}) AS binary), digest) AS digest, input FROM inputs"
        for topic, account in (("debits", payer), ("credits", payee), ("balances", payer))
    )


BANK = Workload(
    name="bank",
    about="Bank: transfers between accounts; the total never changes, no balance is invented.",
    expected=_expected(),
    topics=("debits", "credits", "balances"),
    identity=f"xxhash64(key, {part(1)})",
    state=Bank,
    changelog="balances",
    aggregate=Aggregate(
        total=part(2),
        amount=f"CASE topic WHEN 'debits' THEN -({AMOUNT}) WHEN 'credits' THEN {AMOUNT} END",
        over="CASE WHEN topic IN ('debits', 'credits') THEN 'account' END",
    ),
    rows=("W5",),
)
WORKLOADS = (BANK,)
