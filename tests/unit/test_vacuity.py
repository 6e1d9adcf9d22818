"""When a run could not have shown what it claims, from the plan and the history alone."""

from typing import Any

import pytest

from onceproof.harness.judge.vacuity import vacuous
from onceproof.harness.model.plan import make
from onceproof.harness.model.scenario import parse
from onceproof.harness.record.events import (
    Event,
    Exited,
    FaultBegins,
    FaultHealed,
    FaultInjected,
    FaultMissed,
    FaultTarget,
    LinksBroken,
    Outcome,
    Started,
)
from onceproof.harness.record.history import Events

_SCENARIO: dict[str, Any] = {
    "name": "x",
    "about": "x",
    "workload": {"name": "copy"},
    "faults": [{"name": "partition", "target": "worker-0", "mode": "cut", "at_s": 5, "lasts_s": 2}],
}
_FAULT = "0-partition"


def _at(at: float, kind: type[Event], source: str = "nemesis", **keys: Any) -> Event:
    return kind.model_validate({"at": at, "source": source, **keys})


def _committed(at: float, worker: int) -> Event:
    told = {"type": "ok", "transaction": 1, "sources": {}, "records": 1, "incarnation": 1, "n": 1, "t": at}
    return _at(at, Outcome, f"worker-{worker}", **told)


def _says(*more: Event) -> list[str]:
    """The reasons of a run in which a worker's links were cut, with these events besides."""
    whole = [
        _at(0, Started, "worker-0", incarnation=1, pid=1),
        _committed(1, 0),
        _at(5.0, FaultBegins, fault=_FAULT, name="partition", open_transactions=[]),
        _at(5.1, FaultTarget, fault=_FAULT, role="worker-0"),
        _at(5.2, LinksBroken, fault=_FAULT, already=0, broken=3, of=3),
        _at(5.3, FaultInjected, fault=_FAULT, name="partition"),
        _at(7.3, FaultHealed, fault=_FAULT, name="partition"),
        _committed(8, 1),
        *more,
    ]
    planned = make(parse(_SCENARIO, where="test"), 1)
    return [each.says for each in vacuous(planned, Events(sorted(whole, key=lambda each: each.at)))]


def test_a_run_that_shows_what_it_claims() -> None:
    assert _says() == []


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (_at(4, Exited, "worker-0", incarnation=1, code=-9), "worker-0 did not run when it was injected"),
        (_at(6, Exited, "worker-0", incarnation=1, code=-9), ""),
        (_at(7.4, FaultMissed, fault=_FAULT, reason="nobody came"), "it did not take its course: nobody came"),
    ],
)
def test_a_fault_that_met_nobody_or_was_cut_short(event: Event, says: str) -> None:
    assert _says(event) == ([f"fault {_FAULT}: {says}"] if says else [])


def test_a_worker_that_was_started_again_runs() -> None:
    again = _at(4.5, Started, "worker-0", incarnation=2, pid=2)
    assert _says(_at(4, Exited, "worker-0", incarnation=1, code=-9), again) == []
