"""What faults on topics, on what brokers know of producers and on the database accept as proof, and what they hit."""

from types import SimpleNamespace
from typing import Any

import pytest

from onceproof.faults import _links
from onceproof.harness.context.context import FaultContext
from onceproof.harness.model.scenario import parse
from tests.unit.test_faults import missing, planned

ON_DATABASE = {"name": "database", "database": "postgresql"}


def test_replicas_must_have_been_taken_and_added_again() -> None:
    fault = planned(name="reassign", topic="__transaction_state", at_s=1)
    taken = {"event": "reassigned", "step": "taken", "replicas": 2, "leaders_moved": 4}
    added = {**taken, "step": "added", "replicas": 3}
    assert missing(fault, taken, added) is None
    assert "taken" in str(missing(fault, taken))
    assert "no step" in str(missing(fault))
    assert "a replica less" in str(missing(fault, {**taken, "replicas": 3}, added))
    assert "no leader moved" in str(missing(fault, {**taken, "leaders_moved": 0}, added))


def test_a_replica_that_is_alone_must_have_been_out_of_sync() -> None:
    fault = planned(name="unclean-election", target="follower-1:output/0", at_s=1)
    alone = {"event": "out-of-sync", "step": "alone", "broker": 2, "isr": [1, 3], "leader": None}
    before = {**alone, "step": "before-the-others"}
    assert missing(fault, alone, before) is None
    assert "never left" in str(missing(fault, alone))
    assert "was in sync" in str(missing(fault, alone, {**before, "isr": [1, 2, 3]}))


def test_retention_must_have_removed_records() -> None:
    fault = planned("chain", name="retention", topic="middle", at_s=1)
    removed = {"partition": 0, "position": 10, "start": 0, "low_watermark": 11, "end": 11}
    assert missing(fault, {"event": "records-deleted", "partitions": [removed]}) is None
    nothing = {**removed, "low_watermark": 0, "end": 0}
    assert missing(fault, {"event": "records-deleted", "partitions": [nothing]}) is not None
    assert missing(fault) is not None


def test_what_expires_must_have_expired_and_its_worker_gone_on() -> None:
    when = {"worker": 1, "phase": "polled", "count": 3}
    fault = planned(name="expire", what="producer-id", when=when)
    expired = {"event": "expired", "what": "producer-id"}
    committed = {"event": "outcome", "source": "worker-1", "type": "ok"}
    assert missing(fault, expired, committed) is None
    assert "did not expire" in str(missing(fault, committed))
    assert "nothing afterwards" in str(missing(fault, committed, expired))
    assert "nothing afterwards" in str(missing(fault, expired, {**committed, "source": "worker-0"}))


def test_a_broker_without_its_log_directory_must_have_ended_by_itself() -> None:
    fault = planned(name="log-directory", target="broker-1", at_s=1)
    ended = {"event": "node-state", "before": "running", "state": "exited"}
    assert missing(fault, {**ended, "exit_code": 1}) is None
    assert "without an error" in str(missing(fault, {**ended, "exit_code": 0}))
    assert missing(fault, {**ended, "state": "running", "exit_code": 1}) is not None


@pytest.mark.parametrize(
    ("keys", "hit"),
    [
        ({"target": "worker-1", "peer": "database"}, ["lane2->database"]),
        ({"target": "worker-1"}, ["lane2->broker1", "lane2->broker2", "lane2->broker3"]),
        ({"target": "database"}, [f"lane{lane}->database" for lane in (1, 2, 3, 4)]),
    ],
)
def test_links_to_the_database(keys: dict[str, Any], hit: list[str]) -> None:
    raw = {"name": "partition", "mode": "cut", "at_s": 1, **keys}
    scenario = parse({"name": "x", "about": "x", "workload": ON_DATABASE, "faults": [raw]}, where="test")
    [spec] = scenario.faults
    assert isinstance(spec, _links.LinksSpec)
    context: Any = SimpleNamespace(node=lambda role: role)
    assert sorted(_links.meant(context, spec)[1]) == sorted(hit)


def test_a_role_is_resolved_to_the_database() -> None:
    assert FaultContext._node(SimpleNamespace(cluster=SimpleNamespace(admin=None)), "database") == "database"  # type: ignore[arg-type]
