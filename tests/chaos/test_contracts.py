"""What clients and brokers promise for a configuration, tested on a real cluster by the names of the errors.

librdkafka's errors have the broker's names, or, where the client decides by itself, names with an underscore. The Java
client throws an exception of its own for each. What a deleted position leads to is the scenario
copy-records-deleted-past.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import jpype
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from onceproof.harness.base.deadlines import until
from onceproof.harness.cluster import topology
from onceproof.harness.cluster.admin import start_jvm
from onceproof.harness.cluster.cluster import Cluster
from onceproof.harness.model.spec import ClusterSpec

pytestmark = [pytest.mark.chaos, pytest.mark.quick]
_TOO_LONG_MS = 1_000_000  # transaction.max.timeout.ms is 900,000 by default
_CALL_S = 15


class Client:
    """Producers and consumers on one cluster, and a topic of its own for each test."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.admin, self.bootstrap = cluster.admin, cluster.bootstrap(topology.OBSERVER_LANE)
        self.name = f"contract-{name}"
        self.admin.create_topics([self.name], partitions=1, replicas=3, config={})
        until("a leader", lambda: self.admin.partitions(self.name)[0].leader, deadline_s=20)

    def producer(self, **config: Any) -> Producer:
        return Producer({"bootstrap.servers": self.bootstrap, "log_level": 3, **_dotted(config)})

    def transactional(self, **config: Any) -> Producer:
        producer = self.producer(transactional_id=self.name, **config)
        producer.init_transactions(_CALL_S)
        return producer

    def consumer(self, **config: Any) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.name,
                "log_level": 3,
                "enable.auto.commit": False,
                **_dotted(config),
            }
        )

    def java(self, **config: Any) -> Any:
        start_jvm()
        properties = jpype.java.util.Properties()
        serializer = "org.apache.kafka.common.serialization.ByteArraySerializer"
        common = {"bootstrap.servers": self.bootstrap, "key.serializer": serializer, "value.serializer": serializer}
        for key, value in {**common, **_dotted(config)}.items():
            properties.setProperty(key, str(value))
        return jpype.JClass("org.apache.kafka.clients.producer.KafkaProducer")(properties)

    def read(self, isolation: str, seconds: float = 2) -> int:
        """The number of records that a consumer reads from the beginning of the topic."""
        found = 0
        with closing(self.consumer(isolation_level=isolation)) as reader:
            reader.assign([TopicPartition(self.name, 0, OFFSET_BEGINNING)])
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                found += sum(message.error() is None for message in reader.consume(100, timeout=0.2))
        return found


def _dotted(config: dict[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "."): value for key, value in config.items()}


@pytest.fixture
def client(chaos_cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Client]:
    client = Client(chaos_cluster, request.node.name.split("[")[0].replace("_", "-") + str(time.time_ns()))
    yield client
    client.admin.delete_topics([client.name])


def refused(call: Callable[[], Any]) -> Any:
    """librdkafka's error of a call that must fail."""
    with pytest.raises(KafkaException) as caught:
        call()
    return caught.value.args[0]


def thrown(call: Callable[[], Any]) -> set[str]:
    """The names of the Java exception that a call must throw, and of its causes."""
    with pytest.raises(jpype.JException) as caught:
        call()
    found, error = set[str](), caught.value
    while error is not None and len(found) < 5:
        found.add(str(error.getClass().getSimpleName()))
        error = error.getCause()
    return found


def test_c1_a_time_out_above_the_brokers_limit_is_refused(client: Client) -> None:
    producer = client.producer(transactional_id=client.name, transaction_timeout_ms=_TOO_LONG_MS)
    assert refused(lambda: producer.init_transactions(_CALL_S)).name() == "INVALID_TRANSACTION_TIMEOUT"
    java = client.java(transactional_id=client.name, transaction_timeout_ms=_TOO_LONG_MS)
    # The broker's error is the same; the Java client (4.3.1) passes on its words only, in a bare KafkaException.
    with pytest.raises(jpype.JException, match="transaction timeout is larger than the maximum"):
        java.initTransactions()
    java.close()


@pytest.mark.parametrize(
    "config",
    [
        {"acks": 1},
        {"retries": 0},
        {"max_in_flight_requests_per_connection": 6},
    ],
)
def test_c2_idempotence_cannot_be_had_with(client: Client, config: dict[str, Any]) -> None:
    assert refused(lambda: client.producer(enable_idempotence=True, **config)).name() == "_INVALID_ARG"
    assert "ConfigException" in thrown(lambda: client.java(enable_idempotence=True, **config))


def test_c3_an_id_that_expired_is_a_clean_error_and_the_next_producer_works(
    chaos_clusters: Any, request: pytest.FixtureRequest
) -> None:
    spec = ClusterSpec(
        settings={
            "transactional.id.expiration.ms": 3000,
            "transaction.remove.expired.transaction.cleanup.interval.ms": 500,
        }
    )
    client = Client(chaos_clusters.get(spec), "c3")
    producer = client.transactional()
    transact(client, producer)
    until("the id to expire", lambda: client.name not in client.admin.transactional_ids(client.name), deadline_s=30)

    def again() -> None:
        producer.begin_transaction()
        producer.produce(client.name, b"late")
        producer.commit_transaction(_CALL_S)

    error = refused(again)
    assert error.name() in ("INVALID_PRODUCER_ID_MAPPING", "_FENCED", "INVALID_PRODUCER_EPOCH"), error
    transact(client, client.transactional())
    assert client.read("read_committed") == 2


def test_c4_by_epoch_it_is_fatal_and_nothing_is_visible(client: Client) -> None:
    first = client.transactional()
    first.begin_transaction()
    first.produce(client.name, b"fenced")
    first.flush(_CALL_S)
    client.transactional()
    error = refused(lambda: first.commit_transaction(_CALL_S))
    assert error.fatal() and error.name() in ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"), error
    assert client.read("read_committed") == 0

    old = client.java(transactional_id=client.name)
    old.initTransactions()
    old.beginTransaction()
    record = jpype.JClass("org.apache.kafka.clients.producer.ProducerRecord")
    old.send(record(client.name, jpype.JArray(jpype.JByte)(b"fenced")))
    old.flush()
    client.transactional()
    assert thrown(old.commitTransaction) & {"ProducerFencedException", "InvalidProducerEpochException"}
    old.close()
    assert client.read("read_committed") == 0


def test_c4_by_generation_it_is_abortable_and_nothing_is_visible(client: Client) -> None:
    producer = client.transactional()
    with closing(client.consumer(session_timeout_ms=6000)) as member:
        member.subscribe([client.name])
        until("the group", lambda: (member.poll(0.1), member.assignment())[1], deadline_s=20)
        stale = member.consumer_group_metadata()
    producer.begin_transaction()
    producer.produce(client.name, b"fenced")
    positions = [TopicPartition(client.name, 0, 1)]
    error = refused(lambda: producer.send_offsets_to_transaction(positions, stale, _CALL_S))
    assert not error.fatal() and error.txn_requires_abort(), error
    assert error.name() in ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"), error
    producer.abort_transaction(_CALL_S)
    assert client.read("read_committed") == 0
    transact(client, producer)


def test_c5_read_committed_waits_at_the_last_stable_offset(client: Client) -> None:
    producer = client.transactional()
    producer.begin_transaction()
    producer.produce(client.name, b"open")
    producer.flush(_CALL_S)
    plain = client.producer()
    plain.produce(client.name, b"behind it")
    plain.flush(_CALL_S)
    assert (client.read("read_committed"), client.read("read_uncommitted")) == (0, 2)
    producer.commit_transaction(_CALL_S)
    assert client.read("read_committed") == 2


def test_c6_an_open_transaction_is_aborted_at_its_time_out(client: Client) -> None:
    producer = client.transactional(transaction_timeout_ms=2000, message_timeout_ms=1500)
    producer.begin_transaction()
    producer.produce(client.name, b"too late")
    producer.flush(_CALL_S)
    until("the abort", lambda: not client.admin.transaction(client.name).open, deadline_s=20)
    error = refused(lambda: producer.commit_transaction(_CALL_S))
    assert error.fatal() or error.txn_requires_abort(), error
    assert client.read("read_committed") == 0


def test_c7_a_pending_position_is_waited_for(client: Client) -> None:
    producer = client.transactional()
    with closing(client.consumer(isolation_level="read_committed")) as reader:
        place = [TopicPartition(client.name, 0)]
        transact(client, producer, TopicPartition(client.name, 0, 1), reader)
        assert reader.committed(place, timeout=_CALL_S)[0].offset == 1
        producer.begin_transaction()
        producer.produce(client.name, b"pending")
        group = reader.consumer_group_metadata()
        producer.send_offsets_to_transaction([TopicPartition(client.name, 0, 2)], group, _CALL_S)
        error = refused(lambda: reader.committed(place, timeout=2))
        assert error.name() in ("_TIMED_OUT", "UNSTABLE_OFFSET_COMMIT"), error
        producer.commit_transaction(_CALL_S)
        assert reader.committed(place, timeout=_CALL_S)[0].offset == 2


def transact(
    client: Client, producer: Producer, position: TopicPartition | None = None, reader: Consumer | None = None
) -> None:
    """Commit one transaction with one record and, if it is given, the offset in `position`."""
    producer.begin_transaction()
    producer.produce(client.name, b"right")
    if position is not None and reader is not None:
        producer.send_offsets_to_transaction([position], reader.consumer_group_metadata(), _CALL_S)
    producer.commit_transaction(_CALL_S)
