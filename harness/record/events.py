"""The events of a history: one frozen model for each kind. They are read and written in this module only.

    {"at": 12.5, "source": "worker-0", "event": "outcome", "t": 12.499, "incarnation": 1, "transaction": 7, …}

`at` is CLOCK_MONOTONIC in seconds, read by the harness when the event arrived. `source` is the reporter (`worker-0`,
`generator`, `observer-output`, `nemesis`, `monitor`, `request-proxy` or `harness`). Events of a process also have `t`,
the same clock read by the process. A line of an unknown kind, or with an unknown or missing key, is refused.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

# JSON has no tuples; a list of this length is read as one.
Range = Annotated[tuple[int, int], Field(strict=False)]
Placed = Annotated[tuple[int, int, int], Field(strict=False)]
Scalar = str | int | float | bool | None


class Event(BaseModel):
    """The base of all events.

    `kind` is the value of the key `event` in the history, `at` the time of arrival (s), and `source` the reporter.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: ClassVar[str] = ""
    at: float = 0.0
    source: str = ""

    def to_json(self) -> str:
        """Return the event as a line of the history without a line break; keys that were never set are omitted."""
        keys = self.model_dump(mode="json", exclude_unset=True)
        head = {"at": keys.pop("at", 0.0), "source": keys.pop("source", ""), "event": self.kind}
        return json.dumps({**head, **keys}, separators=(",", ":"))

    @property
    def worker(self) -> int:
        """The number of the worker that reported the event. Raises ValueError for any other source."""
        return int(self.source.removeprefix("worker-"))


class ProcessEvent(Event):
    """An event that a process of the run reported.

    `n` numbers the events that a process reported itself, from 1; it is None for events that the harness reports of a
    process. `t` is CLOCK_MONOTONIC in seconds, read by the process. `incarnation` numbers the processes of a worker
    from 1; it is None for other processes.
    """

    n: int | None = None
    t: float = 0.0
    incarnation: int | None = None

    @property
    def process(self) -> tuple[str, int | None]:
        """The process that reported the event: its source and incarnation."""
        return self.source, self.incarnation


class WorkerEvent(ProcessEvent):
    """An event that a worker reported."""

    incarnation: int


# The run


class HistoryBegins(Event):
    """The header of a history, its first line. `wall` is the wall-clock time of `at` in ISO 8601."""

    kind: ClassVar = "history"
    schema_version: int
    wall: str = ""


class RunDescribed(Event):
    """The run's description: the command that repeats it, versions, and the names of its topics and group."""

    kind: ClassVar = "run"
    command: str
    versions: dict[str, str]
    names: dict[str, str]


class Stalled(Event):
    """The run did not come to rest: a wait reached its deadline, as `reason` says."""

    kind: ClassVar = "stalled"
    reason: str


class Behind(BaseModel):
    """A partition whose last stable offset (`lso`) stays below its high watermark (`hw`)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    topic: str
    partition: int
    lso: int
    hw: int


class Quiesced(Event):
    """The run came to rest, except for the partitions in `lso_behind`."""

    kind: ClassVar = "quiesced"
    lso_behind: list[Behind]


class HarnessFailed(Event):
    """The harness failed; the verdict is `unknown: harness-error`."""

    kind: ClassVar = "harness-error"
    reason: str


class NodeExited(Event):
    """A container exited with status `code`, although no fault and no step of the run stopped it."""

    kind: ClassVar = "node-exited"
    node: str
    code: int


class Interrupted(Event):
    """Somebody interrupted the run; the verdict is `unknown: interrupted`."""

    kind: ClassVar = "interrupted"
    reason: str


class WorkloadFailed(Event):
    """The code of the workload fails again and again; the verdict is `unknown: workload-error`."""

    kind: ClassVar = "workload-error"
    reason: str


class NotTidied(Event):
    """A step of the cleanup after the verdict failed."""

    kind: ClassVar = "not-tidied"
    reason: str


class ClusterSample(Event):
    """Offsets summed over all partitions, once per second."""

    kind: ClassVar = "sample"
    input_end: int
    committed: int
    output_hw: int
    output_lso: int


# Processes


class Started(ProcessEvent):
    """A process was started."""

    kind: ClassVar = "started"
    pid: int


class Exited(ProcessEvent):
    """A process ended. `code` is its exit status, or the negative number of the signal that ended it."""

    kind: ClassVar = "exited"
    code: int


class KilledAtStop(Event):
    """A process was killed because it did not end within `after_s` seconds of being asked to stop."""

    kind: ClassVar = "killed-at-stop"
    process: str
    after_s: float


class Ready(ProcessEvent):
    """A worker has created its clients. `client` is the name and version of their library."""

    kind: ClassVar = "ready"
    client: str = ""


class AtPhase(WorkerEvent):
    """A worker waits at a phase of transaction `transaction`, as planned for a fault."""

    kind: ClassVar = "at-phase"
    phase: str
    count: int
    transaction: int
    fault: str


class WentOn(WorkerEvent):
    """A worker continued after it had waited at a phase."""

    kind: ClassVar = "went-on"
    phase: str
    fault: str


class Assigned(WorkerEvent):
    """The group assigned these input partitions to a worker."""

    kind: ClassVar = "assigned"
    partitions: list[int]


class PositionReset(WorkerEvent):
    """A consumer read offset `found` instead of `expected`, because its offset was out of range and was reset."""

    kind: ClassVar = "position-reset"
    partition: int
    expected: int
    found: int


class Began(WorkerEvent):
    """A worker began a transaction."""

    kind: ClassVar = "begin"
    transaction: int


class OfTransaction(WorkerEvent):
    """An event about a complete transaction.

    `sources` maps each input partition to the range of offsets [first, next) that the transaction read.
    """

    transaction: int
    sources: dict[str, Range]
    records: int


class Invoked(OfTransaction):
    """A worker is about to commit a transaction.

    `outputs` maps each `topic/partition` to its number of records and their first and last offset as acknowledged; the
    offsets are -1 if an acknowledgement had no offset.
    """

    kind: ClassVar = "invoke"
    outputs: dict[str, Placed]


class Outcome(OfTransaction):
    """A transaction ended, as far as the worker knows: `ok` (committed), `fail` (not committed) or `info` (unknown)."""

    kind: ClassVar = "outcome"
    type: Literal["ok", "fail", "info"]


class ClientError(ProcessEvent):
    """An error of a Kafka client.

    `call` is the call that failed, and `code` the client's own name of the error. `abortable` and `fatal` are the
    client's own classification of the error.
    """

    call: str
    code: str
    text: str
    abortable: bool = False
    fatal: bool = False
    transaction: int | None = None

    def __str__(self) -> str:
        return f"{self.call}: {self.code}{' (fatal)' if self.fatal else ''}"


class ClientFailed(ClientError):
    """A call of a Kafka client failed."""

    kind: ClassVar = "error"


class Died(ClientError):
    """A worker ended because of an error of its client."""

    kind: ClassVar = "died"


class Sent(ProcessEvent):
    """The generator has sent `records` inputs so far, of which `acknowledged` were acknowledged."""

    kind: ClassVar = "sent"
    records: int
    acknowledged: int


class Filled(ProcessEvent):
    """A process that fills topics for a benchmark has sent `records` outputs so far."""

    kind: ClassVar = "filled"
    records: int


class Finished(ProcessEvent):
    """A generator, filler or observer has finished; an observer reports its topic."""

    kind: ClassVar = "finished"
    records: int
    acknowledged: int | None = None
    topic: str | None = None


# All faults


class FaultEvent(Event):
    """An event about a fault; `fault` is the id of the fault in the plan."""

    fault: str


class FaultBegins(FaultEvent):
    """A fault is about to be injected.

    `open_transactions` has the transactional ids with an open transaction, or None if the cluster did not answer.
    """

    kind: ClassVar = "fault-begins"
    name: str
    open_transactions: list[str] | None


class FaultTarget(FaultEvent):
    """The target of a fault: the role that the scenario names, and the node or worker that has the role.

    Single faults set the other keys: the worker's `incarnation`; the broken `links`; the affected `partitions`; the
    `api` of requests; the worker that replaces the target (`by`), with its incarnation before (`successor_after`); the
    `transactional_id`; the level of a feature before the fault (`before`) and the requested one (`level`).
    """

    kind: ClassVar = "fault-target"
    role: str
    node: str | None = None
    incarnation: int | None = None
    links: list[str] | None = None
    partitions: list[int] | None = None
    api: str | None = None
    by: str | None = None
    successor_after: int | None = None
    transactional_id: str | None = None
    before: int | None = None
    level: int | None = None


class FaultInjected(FaultEvent):
    """A fault was injected."""

    kind: ClassVar = "fault-injected"
    name: str


class FaultHealed(FaultEvent):
    """A fault was healed."""

    kind: ClassVar = "fault-healed"
    name: str


class FaultNotDone(FaultEvent):
    """An event about a fault that did not take place as planned; `reason` says why."""

    reason: str


class FaultMissed(FaultNotDone):
    """A fault was not injected, or the condition that it waited for did not occur."""

    kind: ClassVar = "fault-missed"


class FaultFailed(FaultNotDone):
    """A fault raised an exception."""

    kind: ClassVar = "fault-failed"


class NoCommitUnderFault(FaultEvent):
    """No transaction was committed while a fault lasted."""

    kind: ClassVar = "no-commit-under-fault"


class FaultWitnessed(FaultEvent):
    """What a fault by file says about its own effect, at the end of the run.

    `missing` is the effect that the history does not show, in words, or None. `self_timed` is whether the fault decides
    itself when it ends. The code of the file is not needed to judge the run again.
    """

    kind: ClassVar = "fault-witnessed"
    missing: str | None
    self_timed: bool


class Noted(FaultEvent):
    """An observation of a fault that has no event of its own: `what` names it, and `data` has its values."""

    kind: ClassVar = "noted"
    what: str
    data: dict[str, Scalar] = Field(default_factory=dict)


# Single faults


class NodeState(FaultEvent):
    """A fault acted on a node. `before` and `state` are the states of its container, as Docker reports them."""

    kind: ClassVar = "node-state"
    node: str
    state: str
    before: str = "running"
    exit_code: int = 0


class NodeReplaced(FaultEvent):
    """A node was restarted from another image."""

    kind: ClassVar = "node-replaced"
    node: str
    image: str
    before: str = ""


class LinksBroken(FaultEvent):
    """A fault broke links: of the `of` target links, `already` were broken before the fault and `broken` after it."""

    kind: ClassVar = "links-broken"
    broken: int
    of: int
    already: int = 0


class ToxiproxyRestarted(FaultEvent):
    """Toxiproxy was restarted because a link could not be healed otherwise."""

    kind: ClassVar = "toxiproxy-restarted"


class Prepared(FaultEvent):
    """A coordinator decided to commit or abort a transaction (`state`), but could not write its markers."""

    kind: ClassVar = "prepared"
    state: str
    coordinator: str


class Completed(FaultEvent):
    """Another coordinator completed the transaction, `after_s` seconds after the first one was killed."""

    kind: ClassVar = "completed"
    state: str
    coordinator: str
    after_s: float


class Initialised(FaultEvent):
    """InitProducerId succeeded after `waited_s` seconds."""

    kind: ClassVar = "initialised"
    waited_s: float


class NotInitialised(FaultEvent):
    """InitProducerId failed."""

    kind: ClassVar = "not-initialised"
    reason: str


class ZombieLate(FaultEvent):
    """A stopped worker was taken for dead.

    `successor` is the worker that has committed in its place, and `state` the state of its transaction; each is set
    only if the scenario requires it.
    """

    kind: ClassVar = "zombie-late"
    successor: str = ""
    state: str = ""


class DeletedTo(BaseModel):
    """A partition of which records were deleted.

    `position` is the group's committed offset and `start` the log start offset, both before the deletion.
    `low_watermark` is the low watermark that the brokers returned, and `end` the end of the log.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    partition: int
    position: int
    low_watermark: int
    start: int = 0
    end: int | None = None


class RecordsDeleted(FaultEvent):
    """Records of a topic were deleted; `topic` is the workload's own name of the topic."""

    kind: ClassVar = "records-deleted"
    to: str
    partitions: list[DeletedTo]
    topic: str = "input"


class WorkerSentAway(FaultEvent):
    """A worker was made to leave its group."""

    kind: ClassVar = "worker-sent-away"
    role: str
    incarnation: int


class FeatureRaised(FaultEvent):
    """A finalized feature of the cluster was raised to `level`."""

    kind: ClassVar = "feature-raised"
    level: int


# The request proxy


class RequestEvent(FaultEvent):
    """An event about a request that a rule of a fault matched; `correlation` is its correlation id."""

    link: str
    connection: int
    correlation: int


class RequestMatched(RequestEvent):
    """A request matched a rule. `key` is its API key, and `size` its size in bytes on the wire."""

    kind: ClassVar = "request-matched"
    action: str
    key: int
    version: int
    client: str
    size: int


class RequestDelivered(RequestEvent):
    """A matched request was passed on to the broker."""

    kind: ClassVar = "request-delivered"


class RequestAnswered(RequestEvent):
    """The response to a matched request was passed on to the client."""

    kind: ClassVar = "request-answered"


class RequestDropped(RequestEvent):
    """The response to a matched request was dropped, and the connection closed."""

    kind: ClassVar = "request-dropped"


class RequestLost(RequestEvent):
    """A matched request was not delivered, because the connection to the broker had ended."""

    kind: ClassVar = "request-lost"


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
        return model.model_validate({key: value for key, value in raw.items() if key != "event"})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ValueError(f"{kind}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
