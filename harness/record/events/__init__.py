"""The events of a history: one frozen model for each kind. They are read and written here only.

    {"at": 12.5, "source": "worker-0", "event": "outcome", "t": 12.499, "incarnation": 1, "transaction": 7, …}

`at` is CLOCK_MONOTONIC in seconds, read by the harness when the event arrived. `source` is the reporter (`worker-0`,
`generator`, `observer-output`, `nemesis`, `monitor`, `request-proxy` or `harness`). Events of a process also have `t`,
the same clock read by the process. A line of an unknown kind, or with an unknown or missing key, is refused.
"""

from collections.abc import Mapping
from functools import cache
from sys import intern
from typing import Any

from pydantic import ValidationError

from onceproof.harness.record.events.base import (
    Event,
    FaultEvent,
    ProcessEvent,
    Scalar,
    WorkerEvent,
)
from onceproof.harness.record.events.of_faults import (
    Completed,
    DeletedTo,
    Expired,
    FaultBegins,
    FaultFailed,
    FaultHealed,
    FaultInjected,
    FaultMissed,
    FaultNotDone,
    FaultTarget,
    FaultWitnessed,
    FeatureRaised,
    Initialised,
    LinksBroken,
    NoCommitUnderFault,
    NodeReplaced,
    NodeState,
    Noted,
    NotInitialised,
    OutOfSync,
    Prepared,
    Reassigned,
    RecordsDeleted,
    ToxiproxyRestarted,
    WorkerSentAway,
    ZombieLate,
)
from onceproof.harness.record.events.of_processes import (
    Assigned,
    AtPhase,
    Began,
    ClientError,
    ClientFailed,
    Died,
    Exited,
    Filled,
    Finished,
    Invoked,
    KilledAtStop,
    OfTransaction,
    Outcome,
    PositionReset,
    Ready,
    Sent,
    Spawned,
    Started,
    WentOn,
)
from onceproof.harness.record.events.of_requests import (
    RequestAnswered,
    RequestDelivered,
    RequestDropped,
    RequestEvent,
    RequestLost,
    RequestMatched,
)
from onceproof.harness.record.events.of_the_run import (
    Behind,
    ClusterSample,
    HarnessFailed,
    HistoryBegins,
    Interrupted,
    NodeExited,
    NotTidied,
    Quiesced,
    ReplicasChanged,
    RunDescribed,
    Stalled,
    WorkloadFailed,
)

__all__ = [
    "Assigned",
    "AtPhase",
    "Began",
    "Behind",
    "ClientError",
    "ClientFailed",
    "ClusterSample",
    "Completed",
    "DeletedTo",
    "Died",
    "Event",
    "Exited",
    "Expired",
    "FaultBegins",
    "FaultEvent",
    "FaultFailed",
    "FaultHealed",
    "FaultInjected",
    "FaultMissed",
    "FaultNotDone",
    "FaultTarget",
    "FaultWitnessed",
    "FeatureRaised",
    "Filled",
    "Finished",
    "HarnessFailed",
    "HistoryBegins",
    "Initialised",
    "Interrupted",
    "Invoked",
    "KilledAtStop",
    "LinksBroken",
    "NoCommitUnderFault",
    "NodeExited",
    "NodeReplaced",
    "NodeState",
    "NotInitialised",
    "NotTidied",
    "Noted",
    "OfTransaction",
    "OutOfSync",
    "Outcome",
    "PositionReset",
    "Prepared",
    "ProcessEvent",
    "Quiesced",
    "Ready",
    "Reassigned",
    "RecordsDeleted",
    "ReplicasChanged",
    "RequestAnswered",
    "RequestDelivered",
    "RequestDropped",
    "RequestEvent",
    "RequestLost",
    "RequestMatched",
    "RunDescribed",
    "Scalar",
    "Sent",
    "Spawned",
    "Stalled",
    "Started",
    "ToxiproxyRestarted",
    "WentOn",
    "WorkerEvent",
    "WorkerSentAway",
    "WorkloadFailed",
    "ZombieLate",
    "kinds",
    "parse",
]


@cache
def kinds() -> Mapping[str, type[Event]]:
    """Return the model of every kind of event, by the name of the kind."""
    found: dict[str, type[Event]] = {}
    classes = list(Event.__subclasses__())
    while classes:
        each = classes.pop()
        classes += each.__subclasses__()
        if "kind" in vars(each):
            found[each.kind] = each
    return found


def parse(raw: Mapping[str, Any]) -> Event:
    """Return the event that a JSON object describes. Raises ValueError with the kind, the key and the problem."""
    kind = raw.get("event")
    model = kinds().get(kind) if isinstance(kind, str) else None
    if model is None:
        raise ValueError(f"unknown kind of event {kind!r:.60}")
    try:
        return model.model_validate({key: _interned(value) for key, value in raw.items() if key != "event"}).slim()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ValueError(f"{kind}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _interned(value: Any) -> Any:
    """Return a value whose names are in memory once: sources, types, topics, and what maps of them have as keys."""
    if isinstance(value, str):
        return intern(value)
    if isinstance(value, dict):
        return {intern(key): each for key, each in value.items()}
    return value
