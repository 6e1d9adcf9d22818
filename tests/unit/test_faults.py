"""What each fault accepts as proof that it struck, from the history alone."""

from typing import Any

import pytest

from harness import registry
from harness.plan import PlannedFault, make
from harness.protocols import Witness
from harness.scenario import parse

AT = {"worker": 0, "phase": "produced", "count": 3}


def planned(**spec: Any) -> PlannedFault:
    raw = {"name": "x", "about": "x", "workload": {"name": "copy"}, "faults": [spec]}
    return make(parse(raw, where="test"), 1).faults[0]


def missing(fault: PlannedFault, *events: dict[str, Any]) -> str | None:
    told = [{"fault": fault.id, "at": float(at), "source": "nemesis", **event} for at, event in enumerate(events)]
    witness = registry.fault(fault.name)
    assert isinstance(witness, Witness)
    return witness.missing(fault, told)


def test_every_fault_is_a_witness() -> None:
    assert all(isinstance(fault, Witness) for fault in registry.faults().values())


@pytest.mark.parametrize(("name", "state"), [("kill", "exited"), ("pause", "paused")])
def test_a_node_must_have_been_seen_hit(name: str, state: str) -> None:
    fault = planned(name=name, target="broker-1", at_s=1)
    assert missing(fault, {"event": "node-state", "state": state}) is None
    assert "running" in str(missing(fault, {"event": "node-state", "state": "running"}))
    assert missing(fault) is not None


def test_a_worker_must_have_ended_by_sigkill() -> None:
    fault = planned(name="kill-worker", target="worker-0", at_s=1)
    target = {"event": "fault-target", "role": "worker-0", "incarnation": 2}
    ended = {"event": "exited", "source": "worker-0", "incarnation": 2}
    generator = {"event": "exited", "source": "generator", "code": 0}
    assert missing(fault, target, generator, {**ended, "code": -9}) is None
    assert missing(fault, target, {**ended, "code": 17}) is not None
    assert missing(fault, target, {**ended, "incarnation": 1, "code": -9}) is not None


def test_all_links_must_have_been_broken() -> None:
    fault = planned(name="partition", target="worker-0", mode="cut", at_s=1)
    assert missing(fault, {"event": "links-broken", "broken": 3, "of": 3}) is None
    assert missing(fault, {"event": "links-broken", "broken": 2, "of": 3}) is not None
    assert missing(fault) is not None


@pytest.mark.parametrize(("to", "mark", "enough"), [("behind", 5, True), ("behind", 0, False), ("past", 9, True),
                                                    ("past", 8, False)])  # fmt: skip
def test_records_must_have_been_deleted(to: str, mark: int, enough: bool) -> None:
    fault = planned(name="delete-records", to=to, at_s=1)
    deleted = {"event": "records-deleted", "partitions": [{"partition": 0, "position": 8, "low_watermark": mark}]}
    assert (missing(fault, deleted) is None) == enough


@pytest.mark.parametrize(
    ("fenced", "code", "fatal", "enough"),
    [
        ("generation", "UNKNOWN_MEMBER_ID", False, True),
        ("generation", "_FENCED", True, False),
        ("epoch", "_FENCED", True, True),
        ("epoch", "UNKNOWN_MEMBER_ID", False, False),
    ],
)
def test_a_zombie_must_have_been_fenced_as_claimed(fenced: str, code: str, fatal: bool, enough: bool) -> None:
    fault = planned(name="zombie", when=AT, fenced=fenced)
    target = {"event": "fault-target", "role": "worker-0", "incarnation": 1}
    mine = {"source": "worker-0", "incarnation": 1}
    met = {"event": "error", "call": "commit", "code": code, "fatal": fatal, **mine}
    assert (missing(fault, target, {"event": "zombie-late"}, met) is None) == enough
    assert missing(fault, target, met) is not None
    assert missing(fault, target, {"event": "zombie-late"}, {**met, "incarnation": 2}) is not None
    assert missing(fault, target, {"event": "zombie-late"}, {"event": "outcome", **mine}, met) is not None


@pytest.mark.parametrize(("commits", "enough"), [([("worker-0", 3)], True), ([("worker-1", 3)], False),
                                                  ([("worker-1", 1.5), ("worker-0", 3)], False)])  # fmt: skip
def test_a_zombie_whose_position_was_sent_must_be_the_first_to_commit(
    commits: list[tuple[str, float]], enough: bool
) -> None:
    fault = planned(name="zombie", when=AT, fenced="never")
    before = [{"event": "fault-target", "partitions": [0], "incarnation": 1}, {"event": "fault-injected"},
              {"event": "zombie-late"}]  # fmt: skip
    outcomes = [{"event": "outcome", "type": "ok", "source": source, "at": at, "sources": {"0": [1, 2]},
                 "incarnation": 1} for source, at in commits]  # fmt: skip
    assert (missing(fault, *before, *outcomes) is None) == enough
