"""Which exits are planned, and what is said when nobody watches any more."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from onceproof.harness.cluster.exits import Exit, Exits, Planned


def test_exits_are_planned_while_a_node_is_down() -> None:
    planned, before = Planned(), time.time()
    with planned.down("broker1"):
        pass
    between = time.time()
    planned.end("broker1")
    planned.end("broker1")
    time.sleep(0.01)
    assert [planned.includes("broker1", at) for at in (before - 1, between, time.time())] == [False, True, False]
    assert not planned.includes("broker2", between)


def test_a_node_that_could_not_be_stopped_is_not_down() -> None:
    planned = Planned()
    with pytest.raises(RuntimeError), planned.down("broker1"):
        raise RuntimeError("the engine does not answer")
    time.sleep(0.01)
    assert not planned.includes("broker1", time.time())


class Engine:
    """The events of an engine that ends them."""

    def __init__(self, *events: dict[str, Any]) -> None:
        self._events = events

    def events(self, **_filters: Any) -> "Engine":
        return self

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._events)

    def close(self) -> None:
        pass


def test_an_engine_that_ends_its_events_is_no_silence() -> None:
    told = {"com.docker.compose.service": "broker2", "exitCode": "137"}
    died = {"Actor": {"Attributes": told}, "timeNano": time.time_ns()}
    exits: list[Exit] = []
    blind: list[str] = []
    over = threading.Event()

    def on_blind(says: str) -> None:
        blind.append(says)
        over.set()

    watch = Exits(Engine(died), "op-1", Planned(), exits.append, on_blind)
    assert over.wait(10)
    watch.close()
    assert exits == [Exit("broker2", 137)]
    assert blind == ["exits of containers were not watched any more: the engine ended its events"]
