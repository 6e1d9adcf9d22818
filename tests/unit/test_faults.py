"""What each fault accepts as proof that it struck, from the history alone."""

from typing import Any

import pytest

from onceproof.harness.cluster import topology
from onceproof.harness.context.fault import Prepared, Witness
from onceproof.harness.context.fault import fault as fault_named
from onceproof.harness.judge.vacuity import vacuous
from onceproof.harness.model import registry
from onceproof.harness.model.plan import PlannedFault, make
from onceproof.harness.model.scenario import parse
from onceproof.harness.record.events import Event, kinds
from onceproof.harness.record.events import parse as parse_event
from onceproof.harness.record.history import Events

AT = {"worker": 0, "phase": "produced", "count": 3}


def planned(workload: str = "copy", /, **spec: Any) -> PlannedFault[Any]:
    raw = {"name": "x", "about": "x", "workload": {"name": workload}, "faults": [spec]}
    return make(parse(raw, where="test"), 1).faults[0]


def missing(fault: PlannedFault[Any], *events: dict[str, Any]) -> str | None:
    """What the fault misses in a history of these events, each with the keys that its kind needs besides."""
    witness = fault_named(fault.name)
    assert isinstance(witness, Witness)
    return witness.missing(
        fault, Events(_event({"fault": fault.id, "at": float(at), **event}) for at, event in enumerate(events))
    )


# What an event must have, and what no fault looks at.
_BESIDES: dict[str, Any] = {
    "node": "broker1",
    "name": "x",
    "transaction": 7,
    "sources": {},
    "records": 1,
    "count": 1,
    "phase": "x",
    "link": "l",
    "connection": 1,
    "correlation": 1,
    "action": "hold",
    "key": 26,
    "version": 1,
    "client": "c",
    "size": 1,
    "text": "",
    "state": "",
    "code": 0,
    "incarnation": 1,
    "type": "fail",
    "after_s": 1.0,
    "waited_s": 1.0,
    "to": "up-to",
    "partitions": [],
    "level": 1,
    "coordinator": "broker1",
    "role": "x",
    "image": "",
    "broken": 1,
    "of": 1,
}


def _event(raw: dict[str, Any]) -> Event:
    model = kinds()[raw["event"]]
    needed = {key: _BESIDES[key] for key, field in model.model_fields.items() if field.is_required() and key not in raw}
    known = {key: value for key, value in raw.items() if key == "event" or key in model.model_fields}
    return parse_event({"source": "nemesis", **needed, **known})


def test_every_fault_is_a_witness() -> None:
    assert all(isinstance(fault_named(name), Witness) for name in registry.names("fault"))


@pytest.mark.parametrize(("name", "state"), [("kill", "exited"), ("pause", "paused")])
def test_a_node_must_have_been_seen_hit(name: str, state: str) -> None:
    fault = planned(name=name, target="broker-1", at_s=1)
    assert missing(fault, {"event": "node-state", "before": "running", "state": state}) is None
    assert "was not running" in str(missing(fault, {"event": "node-state", "before": state, "state": state}))
    assert "running" in str(missing(fault, {"event": "node-state", "state": "running"}))
    assert missing(fault) is not None


def test_a_worker_must_have_ended_by_sigkill() -> None:
    fault = planned(name="kill-worker", target="worker-0", at_s=1)
    target = {"event": "fault-target", "role": "worker-0", "incarnation": 2}
    ended = {"event": "exited", "source": "worker-0", "incarnation": 2}
    generator = {"event": "exited", "source": "generator", "code": 0}
    assert missing(fault, target, generator, {**ended, "code": -9}) is None
    assert missing(fault, target, {**ended, "code": 17}) is not None
    assert missing(fault, {**ended, "code": -9}, target) is not None
    assert missing(fault, target, {**ended, "incarnation": 1, "code": -9}) is not None


def test_all_links_must_have_been_broken() -> None:
    fault = planned(name="partition", target="worker-0", mode="cut", at_s=1)
    assert missing(fault, {"event": "links-broken", "already": 1, "broken": 3, "of": 3}) is None
    assert missing(fault, {"event": "links-broken", "already": 3, "broken": 3, "of": 3}) is not None
    assert missing(fault, {"event": "links-broken", "broken": 2, "of": 3}) is not None
    assert missing(fault) is not None


@pytest.mark.parametrize(
    ("to", "mark", "enough"), [("behind", 5, True), ("behind", 0, False), ("past", 9, True), ("past", 8, False)]
)
def test_records_must_have_been_deleted(to: str, mark: int, enough: bool) -> None:
    fault = planned(name="delete-records", to=to, at_s=1)
    there = {"partition": 0, "position": 8, "low_watermark": mark}
    assert (missing(fault, {"event": "records-deleted", "partitions": [{**there, "start": 0}]}) is None) == enough
    assert to == "past" or missing(fault, {"event": "records-deleted", "partitions": [{**there, "start": mark}]})


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


@pytest.mark.parametrize(("types", "enough"), [([], True), (["fail", "ok"], True), (["info"], True), (["ok"], False)])
def test_a_zombie_that_is_fenced_in_any_way_does_not_commit(types: list[str], enough: bool) -> None:
    fault = planned(name="zombie", when=AT, fenced="any")
    mine = {"source": "worker-0", "incarnation": 1}
    before = [
        {"event": "fault-target", "role": "worker-0", "incarnation": 1},
        {"event": "outcome", "type": "ok", **mine},
    ]
    after = [{"event": "outcome", "type": each, **mine} for each in types]
    assert (missing(fault, *before, {"event": "zombie-late"}, *after) is None) == enough


@pytest.mark.parametrize(
    ("phase", "commits", "enough"),
    [
        ("offsets-sent", [("worker-0", 3)], True),
        ("offsets-sent", [("worker-1", 3)], False),
        ("offsets-sent", [("worker-1", 1.5), ("worker-0", 3)], False),
        ("before-commit", [("worker-1", 1.5), ("worker-0", 3)], False),
        ("produced", [("worker-1", 1.5), ("worker-0", 3)], True),  # a client without generation
        ("produced", [("worker-1", 1.5)], False),
    ],
)
def test_a_zombie_that_nobody_fences_commits_and_first_if_its_position_was_sent(
    phase: str, commits: list[tuple[str, float]], enough: bool
) -> None:
    fault = planned(name="zombie", when={**AT, "phase": phase}, fenced="never")
    before: list[dict[str, Any]] = [
        {"event": "fault-target", "partitions": [0], "incarnation": 1},
        {"event": "fault-injected"},
        {"event": "zombie-late"},
    ]
    outcomes = [
        {"event": "outcome", "type": "ok", "source": source, "at": at, "sources": {"0": [1, 2]}, "incarnation": 1}
        for source, at in commits
    ]
    assert (missing(fault, *before, *outcomes) is None) == enough


HELD = {
    "name": "hold-request",
    "target": "worker-0",
    "api": "EndTxn",
    "when": AT,
    "until": {"worker": 0, "phase": "produced", "count": 4},
}
REACHED = {"event": "at-phase", "fault": "0-hold-request/until"}
DELIVERED = [{"event": "request-matched"}, REACHED, {"event": "request-delivered"}]


@pytest.mark.parametrize(
    ("events", "enough"),
    [
        (DELIVERED, True),
        ([{"event": "request-matched"}, REACHED], False),  # it never arrived
        ([{"event": "request-matched"}, {"event": "request-delivered"}, REACHED], False),  # too early
        ([REACHED, {"event": "request-matched"}, {"event": "request-delivered"}], False),
        ([REACHED], False),
        ([*DELIVERED, {"event": "request-answered", "errors": [47]}], True),  # refused for its epoch: it was late
        ([*DELIVERED, {"event": "request-answered", "errors": [16]}], False),  # refused by another broker
    ],
)
def test_a_request_must_have_been_held_until_the_moment_that_is_named(events: list[Any], enough: bool) -> None:
    assert (missing(planned(**HELD), *events) is None) == enough


def test_a_response_must_have_been_dropped() -> None:
    fault = planned(name="drop-response", target="worker-0", api="EndTxn", when=AT)
    assert missing(fault, {"event": "request-matched"}, {"event": "request-delivered"}) is not None
    assert missing(fault, {"event": "request-dropped"}) is None


def test_a_worker_must_have_given_its_transaction_up() -> None:
    fault = planned(name="abort", when=AT)
    target = {"event": "fault-target", "role": "worker-0", "incarnation": 1}
    error = {
        "event": "error",
        "source": "worker-0",
        "incarnation": 1,
        "call": "process",
        "code": "onceproof:ABORTED_ON_PURPOSE",
    }
    assert missing(fault, target, error) is None
    assert missing(fault, target, {**error, "call": "commit"}) is not None


def test_every_node_must_run_the_other_release() -> None:
    fault = planned(name="upgrade", to="4.3.1", at_s=1)
    nodes = [*(f"broker{n}" for n in (1, 2, 3)), *(f"controller{n}" for n in (1, 2, 3))]
    done = [{"event": "node-replaced", "node": node, "image": "onceproof/kafka:4.3.1-0a1b2c3d"} for node in nodes]
    assert missing(fault, *done) is None
    assert "broker1" in str(missing(fault, *done[1:]))
    assert missing(fault, {**done[0], "image": "onceproof/kafka:3.9.2-0a1b2c3d"}, *done[1:]) is not None


def test_a_feature_must_have_been_raised() -> None:
    fault = planned(name="raise-feature", feature="transaction.version", level=2, at_s=1)
    target = {"event": "fault-target", "role": "transaction.version", "before": 1, "level": 2}
    assert missing(fault, target, {"event": "feature-raised"}) is None
    assert missing(fault, target) is not None
    assert missing(fault, {**target, "before": 2}, {"event": "feature-raised"}) is not None


def test_members_must_have_been_sent_away() -> None:
    fault = planned(name="rebalances", at_s=1)
    away = [{"event": "worker-sent-away", "role": f"worker-{worker}", "incarnation": 1} for worker in range(3)]
    joined, gone = (
        [{"event": event, "source": f"worker-{worker}", "incarnation": 1} for worker in range(3)]
        for event in ("assigned", "exited")
    )
    assert missing(fault, *away, *joined, *gone) is None
    assert missing(fault, *away, *joined, *gone[:2]) is not None
    assert missing(fault, *away, *joined[:2], *gone) is not None
    assert missing(fault, *away[:1] * 3, *joined, *gone) is not None


def test_nodes_must_have_run_another_release_before() -> None:
    fault = planned(name="upgrade", at_s=1, to="4.3.1")
    done = [
        {"event": "node-replaced", "node": node, "before": "kafka:4.2.0-1", "image": "kafka:4.3.1-1"}
        for node in topology.NODES
    ]
    assert missing(fault, *done) is None
    assert missing(fault, *done[1:]) is not None
    assert missing(fault, {**done[0], "before": "kafka:4.3.1-1"}, *done[1:]) is not None


def test_a_node_that_had_to_be_killed_was_not_stopped() -> None:
    fault = planned(name="stop", target="broker-1", at_s=1)
    ended = {"event": "node-state", "before": "running", "state": "exited"}
    assert missing(fault, {**ended, "exit_code": 143}) is None
    assert missing(fault, {**ended, "exit_code": 137}) is not None


def test_less_load_than_was_asked_for_shows_less() -> None:
    asked = {"name": "x", "about": "x", "workload": {"name": "copy", "records": 100}}
    plan = make(parse(asked, where="test"), 1)
    told: list[dict[str, Any]] = [
        {"at": 1.0, "source": "worker-0", "event": "outcome", "type": "ok"},
        {"at": 2.0, "source": "generator", "event": "finished", "records": 120, "acknowledged": 100},
    ]
    assert vacuous(plan, Events(map(_event, told))) == []
    [reason] = vacuous(plan, Events(map(_event, [told[0], {**told[1], "acknowledged": 99}])))
    assert reason.kind == "vacuous"
    assert "99" in reason.says


@pytest.mark.parametrize(("target", "vacuous_"), [("database", False), ("broker-1", True)])
def test_no_transaction_can_be_committed_while_the_database_is_down(target: str, vacuous_: bool) -> None:
    workload = {"name": "database", "database": "postgresql", "records": 10}
    stopped = {"name": "stop", "target": target, "at_s": 1, "lasts_s": 4}
    plan = make(parse({"name": "x", "about": "x", "workload": workload, "faults": [stopped]}, where="test"), 1)
    [fault] = plan.faults
    told: list[dict[str, Any]] = [
        {"at": 1.0, "event": "fault-target", "fault": fault.id, "role": target, "node": target},
        {"at": 2.0, "event": "node-state", "fault": fault.id, "before": "running", "state": "exited", "exit_code": 0},
        {"at": 2.0, "event": "fault-injected", "fault": fault.id, "name": "stop"},
        {"at": 7.0, "event": "fault-healed", "fault": fault.id, "name": "stop"},
        {"at": 8.0, "event": "outcome", "source": "worker-0", "type": "ok"},
    ]
    reasons = [each.says for each in vacuous(plan, Events(_event({"source": "nemesis", **each}) for each in told))]
    assert reasons == [f"fault {fault.id}: no transaction was committed while it lasted"] * vacuous_


def test_an_upgrade_has_its_image_before_the_workload_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    monkeypatch.setattr("onceproof.harness.artifacts.images.kafka", built.append)
    upgrade = fault_named("upgrade")
    assert isinstance(upgrade, Prepared)
    upgrade.prepare(upgrade.params(name="upgrade", to="4.3.1", at_s=1))
    assert built == ["4.3.1"]
