"""What clients and brokers promise for a configuration: each contract tried with one client, on one cluster.

    python -m tests.chaos.contracts docs/contracts.md        all of them, with each client and broker, as a page

A contract is a function that raises AssertionError when it does not hold, and otherwise says what was met, by the names
of the errors. librdkafka's errors have the broker's names or, where the client decides by itself, names with an
underscore. The Java client throws an exception of its own for each.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import jpype
from confluent_kafka import KafkaException

from onceproof.harness.base.deadlines import until
from onceproof.harness.cluster import topology
from onceproof.harness.cluster.cluster import Cluster
from onceproof.harness.cluster.pool import lease
from onceproof.harness.model.spec import ClusterSpec, WorkloadSpec
from onceproof.workloads.clients import ClientError, Reader, Writer
from onceproof.workloads.clients.drivers import driver

CLIENTS = ("librdkafka", "java")
BROKERS = ("4.3.1", "3.9.2")
# An id expires soon, for C3. No other contract lets one be idle for so long.
SETTINGS: dict[str, str | int | float | bool] = {
    "transactional.id.expiration.ms": 4000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 500,
}
_TOO_LONG_MS = 1_000_000  # transaction.max.timeout.ms is 900,000 by default
_NEVER = {"acks": "1"}, {"retries": "0"}, {"max.in.flight.requests.per.connection": "6"}
_numbers = count(1)


class Party:
    """One client on one cluster, with a topic of its own."""

    def __init__(self, cluster: Cluster, client: str) -> None:
        self.admin, self._client = cluster.admin, client
        self._bootstrap = cluster.bootstrap(topology.OBSERVER_LANE)
        self.name = f"contract-{client}-{time.time_ns()}-{next(_numbers)}"
        self.admin.create_topics([self.name], partitions=1, replicas=3, config={})
        until("a leader", lambda: self.admin.partitions(self.name)[0].leader, deadline_s=20)

    def close(self) -> None:
        self.admin.delete_topics([self.name])

    def writer(self, **config: Any) -> Writer:
        made = driver(self._client).Writer(self._config(**config), self.name)
        made.start()
        return made

    def reader(self, **config: Any) -> Reader:
        made = driver(self._client).Reader(self._config(**config))
        made.start()
        return made

    def read(self, isolation: str, seconds: float = 2.0) -> int:
        """The number of records that a consumer reads from the beginning of the topic."""
        reader = self.reader(isolation=isolation, fixed=[0], group=f"{self.name}-{isolation}")
        deadline, found = time.monotonic() + seconds, 0
        while time.monotonic() < deadline:
            found += len(reader.poll().records)
        reader.close()
        return found

    def sent(self, writer: Writer, records: int = 1) -> None:
        """Begin a transaction and send records."""
        writer.begin()
        for _ in range(records):
            writer.send(self.name, 0, b"k", b"v", b"")
        writer.flush()

    def _config(self, **config: Any) -> Mapping[str, Any]:
        return {
            **WorkloadSpec().model_dump(),
            "client": self._client,
            "client_config": {},
            "bootstrap": self._bootstrap,
            "name": self.name,
            "incarnation": next(_numbers),
            "input": self.name,
            "group": self.name,
            "stage": 0,
            "fixed": None,
            "isolation": "read_committed",
            "idempotent": True,
            "position": "in-transaction",
            "generation": True,
            **config,
        }


def _refused(call: Callable[[], Any]) -> ClientError:
    """The error of a call that must fail."""
    try:
        call()
    except ClientError as error:
        return error
    raise AssertionError("nothing was refused")


def _told(error: ClientError) -> str:
    kind = "fatal" if error.fatal else "abortable" if error.abortable else "neither fatal nor abortable"
    return f"`{error.code}` ({kind}, of {error.call})"


def time_out_too_long(party: Party) -> str:
    """`transaction.timeout.ms` above the brokers' `transaction.max.timeout.ms` is refused."""
    error = _refused(lambda: party.writer(transaction_timeout_ms=_TOO_LONG_MS))
    assert error.code == "INVALID_TRANSACTION_TIMEOUT" or "larger than the maximum" in error.text, error
    return _told(error)


def not_idempotent(party: Party) -> str:
    """Idempotence is refused with acks other than all, without retries, and with over five requests in flight."""
    names = set()
    for config in _NEVER:
        try:
            party.writer(client_config=config)
        except KafkaException as error:
            names.add(error.args[0].name())
        except jpype.JException as error:
            names.add(str(error.getClass().getSimpleName()))
        else:
            raise AssertionError(f"{config} was accepted")
    assert len(names) == 1, names
    return f"`{names.pop()}` when the producer is made"


def id_expired(party: Party) -> str:
    """A transactional id that has expired is refused at its next use, and the next producer works."""
    writer = party.writer()
    party.sent(writer)
    writer.commit()
    until("the id to expire", lambda: party.name not in party.admin.transactional_ids(party.name), deadline_s=30)

    def again() -> None:
        party.sent(writer)
        writer.commit()

    error = _refused(again)
    successor = party.writer()
    party.sent(successor)
    successor.commit()
    assert party.read("read_committed") == 2
    return _told(error)


def fenced_by_epoch(party: Party) -> str:
    """A producer that another one has fenced gets a fatal error, and nothing of its transaction is visible."""
    old = party.writer()
    party.sent(old)
    party.writer()
    error = _refused(old.commit)
    assert error.fatal and party.read("read_committed") == 0, error
    return _told(error)


def fenced_by_generation(party: Party) -> str:
    """A member of an older generation gets an abortable error, and nothing of its transaction is visible (KIP-447)."""
    writer, member = party.writer(), party.reader()
    until("the group", lambda: (member.poll(), member.assigned())[1], deadline_s=20)
    member.poll()
    stale = member.group()
    member.close()
    party.sent(writer)
    error = _refused(lambda: writer.send_offsets(party.name, {0: (0, 1)}, "", stale))
    assert not error.fatal and error.abortable, error
    writer.abort()
    assert party.read("read_committed") == 0
    party.sent(writer)
    writer.commit()
    return _told(error)


def stable_offset(party: Party) -> str:
    """A read_committed reader waits at the last stable offset, and a read_uncommitted one does not."""
    writer = party.writer()
    party.sent(writer)
    assert (party.read("read_committed"), party.read("read_uncommitted")) == (0, 1)
    writer.commit()
    assert party.read("read_committed") == 1
    return "0 records, and 1 under read_uncommitted, until the commit"


def time_out(party: Party) -> str:
    """The coordinator aborts an open transaction at its time-out, and a later commit is refused."""
    writer = party.writer(transaction_timeout_ms=2000, message_timeout_ms=1500)
    party.sent(writer)
    until("the abort", lambda: not party.admin.transaction(party.name).open, deadline_s=20)
    error = _refused(writer.commit)
    assert (error.fatal or error.abortable) and party.read("read_committed") == 0, error
    return _told(error)


def pending_offset(party: Party) -> str:
    """A consumer that fetches a pending committed offset waits until its transaction is decided (KIP-447)."""
    writer, reader = party.writer(transaction_timeout_ms=20_000), party.reader()
    until("the group", lambda: (reader.poll(), reader.assigned())[1], deadline_s=20)
    reader.poll()
    party.sent(writer, records=3)
    writer.send_offsets(party.name, {0: (0, 2)}, "", reader.group())
    decided = list[float]()

    def decide() -> None:
        time.sleep(2)
        decided.append(time.monotonic())
        writer.commit()

    deciding = threading.Thread(target=decide)
    deciding.start()
    reader.rewind()
    went_on = time.monotonic()
    deciding.join(30)
    found = until("a record", lambda: reader.poll().records, deadline_s=10)
    reader.close()
    assert decided and went_on > decided[0] and found[0].offset == 2, (decided, went_on, found[:1])
    return "waited until the commit, and went on at its offset"


def position_deleted(party: Party) -> str:
    """A consumer whose position was deleted follows `auto.offset.reset`, and the reset shows."""
    writer = party.writer()
    party.sent(writer, records=10)
    writer.commit()
    reader = party.reader(fixed=[0], transaction_records=1)
    first = until("a record", lambda: reader.poll().records, deadline_s=20)[0]
    reader.commit({0: (0, 2)}, "")
    party.admin.delete_records({(party.name, 0): 6})
    reader.rewind()
    batch = until("a record after the reset", lambda: each if (each := reader.poll()).records else None, deadline_s=20)
    reader.close()
    assert batch is not None and first.offset == 0 and batch.records[0].offset == 6, batch
    assert batch.resets == [{"partition": 0, "expected": 2, "found": 6}], batch.resets
    return "expected offset 2, found 6"


CONTRACTS: Mapping[str, Callable[[Party], str]] = {
    "time-out above the maximum": time_out_too_long,
    "no idempotence": not_idempotent,
    "transactional id expired": id_expired,
    "fenced by epoch": fenced_by_epoch,
    "fenced by generation": fenced_by_generation,
    "last stable offset": stable_offset,
    "transaction time-out": time_out,
    "pending offset": pending_offset,
    "position deleted": position_deleted,
}


@contextmanager
def party(cluster: Cluster, client: str) -> Iterator[Party]:
    """A client with its topic, which is deleted at the end."""
    made = Party(cluster, client)
    try:
        yield made
    finally:
        made.close()


_HEAD = """# Contracts

Each row is one promise that the documentation of Kafka or of a client, or a KIP, makes for a configuration. It was
tried with the client and the brokers of the row. The last column has the error that the client reported, whether it
calls the error abortable or fatal, and the call that raised it. `python -m tests.chaos.contracts FILE` tries all of
them and writes this page. The Java client is that of Kafka 4.3.1, and librdkafka that of the confluent-kafka release in
`requirements.lock`.

| contract | client | brokers | observed |
|---|---|---|---|
"""


def main(target: Path) -> None:
    """Try every contract and write the page."""
    rows = list[str]()
    for version in BROKERS:
        with lease(ClusterSpec(version=version, settings=SETTINGS), keep=False) as cluster:
            for contract in CONTRACTS.values():
                for client in CLIENTS:
                    with party(cluster, client) as one:
                        says = (contract.__doc__ or "").strip()
                        rows.append(f"| {says} | {client} | {version} | {contract(one)} |")
                        print(rows[-1], flush=True)  # noqa: T201
    # The rows of a contract side by side: they were tried broker by broker.
    each = len(CONTRACTS) * len(CLIENTS)
    lines = [row for number in range(each) for row in rows[number::each]]
    target.write_text(_HEAD + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
