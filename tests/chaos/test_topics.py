"""What Spark reads of a topic is what is there, each column of it; and a range that cannot be read fails the query."""

import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from confluent_kafka import Producer
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame

from harness import topology
from harness.admin import Admin, Isolation
from harness.cluster import Cluster
from harness.provenance import HEADER
from verifiers import topics
from verifiers.spark import rows, session

pytestmark = [pytest.mark.chaos, pytest.mark.quick]
_CALL_S = 15
_KEYS, _VALUES = [b"k", None, b""], [b"v", None, b""]
_HEADERS = [[], [("trace", b"x"), (HEADER, b"ours")], [(HEADER, b"one"), (HEADER, b"two")], [(HEADER, None)]]


class Written:
    """A topic of two partitions; in the first: 12 records that were committed, 3 that were aborted, and 2 that are open
    until the test ends, each transaction in a batch of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self.admin: Admin = cluster.admin
        self.bootstrap, self.name = cluster.bootstrap(topology.OBSERVER_LANE), f"topics-{time.time_ns()}"
        self.admin.create_topics([self.name], partitions=2, replicas=3, config={})
        self.producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": self.name, "log_level": 3})
        self.producer.init_transactions(_CALL_S)
        self.records = [(key, _VALUES[number % 3], headers)
                        for number, (key, headers) in enumerate((k, h) for h in _HEADERS for k in _KEYS)]  # fmt: skip
        self.transaction(len(self.records))
        self.producer.commit_transaction(_CALL_S)  # offsets 0 to 11, the marker 12
        self.transaction(3)
        self.producer.abort_transaction(_CALL_S)  # 13 to 15, 16
        self.transaction(2)  # 17 and 18

    def transaction(self, count: int) -> None:
        self.producer.begin_transaction()
        for key, value, headers in self.records[:count]:
            self.producer.produce(self.name, value, key, partition=0, headers=headers)
        assert self.producer.flush(_CALL_S) == 0

    def read(self, start: int, end: int, isolation: Isolation = "read_committed") -> DataFrame:
        pinned = [{"topic": self.name, "partition": 0, "start": start, "end": end},
                  {"topic": self.name, "partition": 1, "start": 0, "end": 0},
                  {"topic": "another", "partition": 7, "start": 0, "end": 9}]  # fmt: skip
        return topics.read(session(), self.bootstrap, self.name, pinned, isolation, deadline_s=3)


@pytest.fixture(scope="module")
def written(cluster: Cluster) -> Iterator[Written]:
    written = Written(cluster)
    yield written
    with suppress(Exception):  # a test that failed may have left it in any state
        written.producer.abort_transaction(_CALL_S)
    written.admin.delete_topics([written.name])
    del written.producer  # it would look for its cluster for ever


def test_each_column_of_each_record_is_read(written: Written) -> None:
    found = [tuple(row) for row in rows(written.read(0, 17).orderBy("offset"))]
    told: dict[int, bytes | None] = {0: None, 1: b"ours", 2: None, 3: None}
    assert found == [
        (0, offset, key, value, told[offset // 3]) for offset, (key, value, _) in enumerate(written.records)
    ]


def test_some_columns_in_another_order(written: Written) -> None:
    assert [tuple(row) for row in rows(written.read(3, 6).select("header", "key", "offset"))] == [
        (b"ours", b"k", 3), (b"ours", None, 4), (b"ours", b"", 5)
    ]  # fmt: skip


def test_what_is_aborted_or_open_is_seen_by_who_asks_for_it(written: Written) -> None:
    frame = written.read(10, 19, "read_uncommitted").select("partition", "offset").orderBy("offset")
    assert [tuple(row) for row in rows(frame)] == [(0, offset) for offset in (10, 11, 13, 14, 15, 17, 18)]
    assert rows(written.read(13, 17)) == rows(written.read(12, 13)) == rows(written.read(5, 5)) == []


def test_an_end_that_cannot_be_reached_fails(written: Written) -> None:
    with pytest.raises(Py4JJavaError, match=f"{written.name}-0: nothing came in 3 s from offset 17 on"):
        rows(written.read(0, 19))


def test_a_start_that_was_deleted_fails(written: Written) -> None:
    written.admin.delete_records({(written.name, 0): 2})
    with pytest.raises(Py4JJavaError, match="out of range"):
        rows(written.read(0, 17))
    assert [row["offset"] for row in rows(written.read(2, 4))] == [2, 3]
