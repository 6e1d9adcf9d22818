"""Spark reads each column of each record of a topic, and a query fails if a range cannot be read completely."""

import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from confluent_kafka import Producer
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame

from onceproof.harness.cluster import topology
from onceproof.harness.cluster.admin import Admin
from onceproof.harness.cluster.cluster import Cluster
from onceproof.harness.cluster.described import Isolation
from onceproof.harness.cluster.remaining import remaining
from onceproof.harness.record import payload
from onceproof.harness.record.provenance import HEADER, passed_on, provenance
from onceproof.verifiers.collect import topics
from onceproof.verifiers.evidence.frames import rows
from onceproof.verifiers.evidence.spark import session

pytestmark = [pytest.mark.chaos, pytest.mark.quick]
_CALL_S = 15
_MANY = 12_000
_RIGHT = provenance(3, 41, 1, 2, 12)
_LONGER = passed_on(_RIGHT, 2, 1, 7, 3, 44)
_TOLD = (3_0000000000041, 1_00002_0000000012)
_KEYS = (b"k", None, b"")
_VALUES = (
    (b"000000000012 and more", 12),
    (None, None),
    (b"", None),
    (b"12", 12),
    (b"00000000001x", None),
    (b"+00000000001", None),
)
_HEADERS: tuple[list[tuple[str, bytes | None]], ...] = (
    [(HEADER, _RIGHT)],
    [("trace", b"x"), (HEADER, _RIGHT), ("more", b"")],
    # Headers that are no provenance header:
    [],
    [("trace", _RIGHT)],
    [(HEADER, _RIGHT), (HEADER, _RIGHT)],
    [(HEADER, None)],
    [(HEADER, b"")],
    [(HEADER, _RIGHT[:-1])],
    [(HEADER, _RIGHT + b"0")],
    [(HEADER, b"x" * len(_RIGHT))],
    [(HEADER, b" " + _RIGHT[1:])],
    [(HEADER, _LONGER)],
)


class Written:
    """A topic with two partitions. The first has 12 committed and 3 aborted records, and 2 in an open transaction.

    Each transaction is one batch. The open transaction ends with the tests of the module.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.admin: Admin = cluster.admin
        self.bootstrap, self.name = cluster.bootstrap(topology.OBSERVER_LANE), f"topics-{time.time_ns()}"
        self.admin.create_topics([self.name], partitions=2, replicas=3, config={})
        self.producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": self.name, "log_level": 3})
        self.producer.init_transactions(_CALL_S)
        self.records = [(_KEYS[place % 3], _VALUES[place % 6][0], headers) for place, headers in enumerate(_HEADERS)]
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

    def read(
        self, start: int, end: int, isolation: Isolation = "read_committed", *, intermediate: bool = False
    ) -> DataFrame:
        pinned = [
            {"topic": self.name, "partition": 0, "start": start, "end": end},
            {"topic": self.name, "partition": 1, "start": 0, "end": 0},
            {"topic": "another", "partition": 7, "start": 0, "end": 9},
        ]
        return topics.read(
            session(), self.bootstrap, self.name, pinned, isolation, intermediate=intermediate, deadline_s=3
        )


@pytest.fixture(scope="module")
def written(chaos_cluster: Cluster) -> Iterator[Written]:
    written = Written(chaos_cluster)
    yield written
    with suppress(Exception):  # a failed test may have left it in any state
        written.producer.abort_transaction(_CALL_S)
    written.admin.delete_topics([written.name])
    del written.producer  # it would try to reach its cluster forever


def test_each_column_of_each_record_is_read(written: Written) -> None:
    found = [tuple(row) for row in rows(written.read(0, 17).drop("digest", "header").orderBy("offset"))]
    assert found == [
        (0, offset, key, value, _VALUES[offset % 6][1], *(_TOLD if offset < 2 else (None, None)), None)
        for offset, (key, value, _) in enumerate(written.records)
    ]


def test_the_digest_is_that_of_spark(written: Written) -> None:
    told = [tuple(row) for row in rows(written.read(0, 12).selectExpr("digest", "xxhash64(key, value)"))]
    assert all(digest == spark for digest, spark in told)
    assert len(set(told)) == len(_VALUES)
    assert told[0][0] == payload.digest(b"k", _VALUES[0][0])


def test_the_longer_header(written: Written) -> None:
    found = [
        tuple(row) for row in rows(written.read(0, 17, intermediate=True).select("told_2", "told_0").orderBy("offset"))
    ]
    assert found == [*[(None, None)] * 11, (3_0000000000044, _TOLD[0])]


def test_some_columns_in_another_order(written: Written) -> None:
    assert [tuple(row) for row in rows(written.read(1, 4).select("told_1", "key", "offset"))] == [
        (_TOLD[1], None, 1),
        (None, b"", 2),
        (None, b"k", 3),
    ]


def test_what_is_aborted_or_open_is_seen_by_who_asks_for_it(written: Written) -> None:
    frame = written.read(10, 19, "read_uncommitted").select("partition", "offset").orderBy("offset")
    assert [tuple(row) for row in rows(frame)] == [(0, offset) for offset in (10, 11, 13, 14, 15, 17, 18)]
    assert rows(written.read(13, 17)) == rows(written.read(12, 13)) == rows(written.read(5, 5)) == []


@pytest.mark.parametrize(
    ("first", "end", "remain"),
    [
        pytest.param(11, 17, True, id="a record before markers and aborted records"),
        pytest.param(12, 17, False, id="markers and aborted records"),
        pytest.param(16, 17, False, id="a marker"),
        pytest.param(12, 19, True, id="an open transaction at the end"),
    ],
)
def test_markers_and_aborted_records_do_not_remain(written: Written, first: int, end: int, remain: bool) -> None:
    place = written.name, 0
    assert remaining(written.bootstrap, {place: (first, end)}) == ({place} if remain else set())


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_each_codec_and_more_records_than_a_poll_gives(chaos_cluster: Cluster, codec: str) -> None:
    name, bootstrap = f"topics-{codec}-{time.time_ns()}", chaos_cluster.bootstrap(topology.OBSERVER_LANE)
    chaos_cluster.admin.create_topics([name], partitions=1, replicas=3, config={})
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True})
    for number in range(_MANY):
        producer.produce(name, b"%012d" % number + b"x" * (number % 7 * 150), headers=[(HEADER, _RIGHT)])
    assert producer.flush(_CALL_S) == 0
    pinned = [{"topic": name, "partition": 0, "start": 0, "end": _MANY}]
    frame = topics.read(session(), bootstrap, name, pinned, "read_committed")
    same = frame.where("number = offset AND length(value) = 12 + offset % 7 * 150 AND told_1 IS NOT NULL").where(
        "digest = xxhash64(key, value)"
    )
    assert frame.count() == same.count() == _MANY
    chaos_cluster.admin.delete_topics([name])


def test_an_end_that_cannot_be_reached_fails(written: Written) -> None:
    with pytest.raises(Py4JJavaError, match=f"{written.name}-0: nothing came in 3 s from offset 17 on"):
        rows(written.read(0, 19))


def test_a_start_that_was_deleted_fails(written: Written) -> None:
    written.admin.delete_records({(written.name, 0): 2})
    with pytest.raises(Py4JJavaError, match="out of range"):
        rows(written.read(0, 17))
    assert [row["offset"] for row in rows(written.read(2, 4))] == [2, 3]
