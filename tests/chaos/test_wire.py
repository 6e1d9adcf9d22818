"""The request proxy on a real cluster: each action on a Produce request, by what the client sees and the log holds."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from onceproof.harness.base.deadlines import until
from onceproof.harness.cluster import topology
from onceproof.harness.cluster.cluster import Cluster
from onceproof.harness.cluster.request_proxy import Action, Wire

pytestmark = [pytest.mark.chaos, pytest.mark.quick]
_LANE = 4
_GIVES_UP_MS = 5000  # a cold cluster takes 2 s until the first request


class Lane:
    """One lane that leads through the request proxy, its own topic, and the journal of the proxy."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.admin = cluster, cluster.admin
        self.journal: list[dict[str, Any]] = []
        self.topic = f"wire-{time.time_ns()}"
        self.admin.create_topics([self.topic], partitions=1, replicas=3, config={})
        until("a leader", lambda: self.admin.partitions(self.topic)[0].leader, deadline_s=20)
        self.links = topology.lane_links(_LANE)
        cluster.put_wire(self.links, self.journal.append)

    @property
    def wire(self) -> Wire:
        assert self.cluster.wire is not None
        return self.cluster.wire

    def rule(self, action: Action, **more: Any) -> None:
        self.wire.rule("the-rule", links=self.links, action=action, api="Produce", **more)

    def produce(self, while_waiting: Callable[[], None] = lambda: None) -> str | None:
        """Send one record and wait for its response. Returns the name of the error, or None."""
        told: list[Any] = []
        producer = Producer(
            {
                "bootstrap.servers": self.cluster.bootstrap(_LANE),
                "enable.idempotence": True,
                "log_level": 0,
                "message.timeout.ms": _GIVES_UP_MS,
                "socket.timeout.ms": 1000,
                "client.id": "lane-test",
            }
        )
        producer.produce(self.topic, b"value", partition=0, on_delivery=lambda error, _: told.append(error))
        while_waiting()
        producer.flush(15)
        return told[0].name() if told[0] is not None else None

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.journal if event["event"] == kind]

    def records(self) -> int:
        place = self.topic, 0
        return self.admin.offsets([place], "latest", "read_uncommitted")[place]


@pytest.fixture
def lane(chaos_cluster: Cluster) -> Iterator[Lane]:
    lane = Lane(chaos_cluster)
    try:
        yield lane
    finally:
        chaos_cluster.take_wire_out()
        lane.admin.delete_topics([lane.topic])
        assert chaos_cluster.healthy()


def test_held_past_the_clients_patience_it_arrives_when_it_is_released(lane: Lane) -> None:
    lane.rule("hold", requests=0)
    assert lane.produce() == "_MSG_TIMED_OUT"
    assert lane.records() == 0
    lane.wire.release("the-rule")
    until("the record", lambda: lane.records() == 1, deadline_s=10)
    assert len(lane.events("matched")) >= 2  # the client repeated the request on another connection
    assert {event["client"] for event in lane.events("matched")} == {"lane-test"}


def test_only_the_first_is_held_when_one_is_meant(lane: Lane) -> None:
    lane.rule("hold")
    assert lane.produce() is None
    lane.wire.release("the-rule")
    until("the held one's answer", lambda: lane.events("answered"), deadline_s=10)
    assert lane.records() == 1  # the broker had seen its sequence number before


def test_a_dropped_response_is_asked_for_again(lane: Lane) -> None:
    lane.rule("drop-response")
    assert lane.produce() is None
    assert len(lane.events("dropped")) == 1
    assert lane.records() == 1


def test_what_is_closed_is_never_delivered(lane: Lane) -> None:
    lane.rule("close", requests=0)
    assert lane.produce() == "_MSG_TIMED_OUT"
    assert lane.events("matched") and not lane.events("delivered")
    assert lane.records() == 0


def test_a_delay_is_kept(lane: Lane) -> None:
    lane.rule("delay", delay_ms=500)
    started = time.monotonic()
    assert lane.produce() is None
    assert time.monotonic() - started >= 0.5


@pytest.mark.parametrize("other", [{"client": "somebody-else"}, {"links": ["lane1->broker1"]}])
def test_others_are_left_alone(lane: Lane, other: dict[str, Any]) -> None:
    lane.wire.rule("the-rule", **{"links": lane.links, "action": "hold", "api": "Produce", "requests": 0, **other})
    assert lane.produce() is None
    assert not lane.journal
