"""Every kind of event that a history can hold: one frozen model for each, read and written here only.

    {"at": 12.5, "source": "worker-0", "event": "outcome", "t": 12.499, "incarnation": 1, "transaction": 7, …}

`at` is the harness's CLOCK_MONOTONIC in seconds when the event arrived; `source` is who reported it (`worker-0`,
`generator`, `observer-output`, `nemesis`, `monitor`, `request-proxy`, `harness`). What a process reports also has `t`,
the same clock read by the process itself. A line of an unknown kind, or with an unknown or missing key, is refused.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

# JSON has no tuples: a list of that length is one.
Range = Annotated[tuple[int, int], Field(strict=False)]
Placed = Annotated[tuple[int, int, int], Field(strict=False)]
Scalar = str | int | float | bool | None


class Event(BaseModel):
    """What all events have. `kind` is the value of the key `event` in the history."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: ClassVar[str] = ""
    at: float = 0.0
    source: str = ""

    def to_json(self) -> str:
        """One line of the history, without its line break. Keys that were never set are left out."""
        said = self.model_dump(mode="json", exclude_unset=True)
        head = {"at": said.pop("at", 0.0), "source": said.pop("source", ""), "event": self.kind}
        return json.dumps({**head, **said}, separators=(",", ":"))

    @property
    def worker(self) -> int:
        """The number in a source `worker-N`. Raises ValueError for any other source."""
        return int(self.source.removeprefix("worker-"))


class ProcessEvent(Event):
    """Reported by a process of the run. `incarnation` counts a worker's processes from 1; others have none."""

    t: float = 0.0
    incarnation: int | None = None

    @property
    def process(self) -> tuple[str, int | None]:
        """Source and incarnation: which process it was."""
        return self.source, self.incarnation


class WorkerEvent(ProcessEvent):
    """Reported by a worker, which always has an incarnation."""

    incarnation: int


# The run


class HistoryBegins(Event):
    """The first line. `wall` is the wall-clock time of `at`, in ISO 8601."""

    kind: ClassVar = "history"
    schema_version: int
    wall: str = ""


class RunDescribed(Event):
    """What the run is made of: the command that repeats it, versions, and the names of topics and group."""

    kind: ClassVar = "run"
    command: str
    versions: dict[str, str]
    names: dict[str, str]


class Stalled(Event):
    """A step towards rest that did not come within its deadline."""

    kind: ClassVar = "stalled"
    reason: str


class Behind(BaseModel):
    """A partition whose last stable offset stays below its high watermark."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    topic: str
    partition: int
    lso: int
    hw: int


class Quiesced(Event):
    """The cluster is at rest, but for these partitions."""

    kind: ClassVar = "quiesced"
    lso_behind: list[Behind]


class HarnessFailed(Event):
    """The harness could not do its work; the verdict is `unknown: harness-error`."""

    kind: ClassVar = "harness-error"
    reason: str


class NotTidied(Event):
    """A step of the clean-up after the verdict failed."""

    kind: ClassVar = "not-tidied"
    reason: str


class ClusterSample(Event):
    """Sums over partitions, once a second."""

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
    """A process ended; `code` is negative where a signal ended it."""

    kind: ClassVar = "exited"
    code: int


class KilledAtStop(Event):
    """A process that was asked to stop did not end in time."""

    kind: ClassVar = "killed-at-stop"
    process: str
    after_s: float


class Ready(ProcessEvent):
    """A worker has its consumer and producer. `client` names the library and its version."""

    kind: ClassVar = "ready"
    client: str = ""


class AtPhase(WorkerEvent):
    """A worker stopped at a phase of a transaction for a fault, and waits."""

    kind: ClassVar = "at-phase"
    phase: str
    count: int
    transaction: int
    fault: str


class WentOn(WorkerEvent):
    """The worker went on."""

    kind: ClassVar = "went-on"
    phase: str
    fault: str


class Assigned(WorkerEvent):
    """A worker was assigned these input partitions."""

    kind: ClassVar = "assigned"
    partitions: list[int]


class PositionReset(WorkerEvent):
    """A consumer found itself at another offset than expected: its position was out of range and was reset."""

    kind: ClassVar = "position-reset"
    partition: int
    expected: int
    found: int


class Began(WorkerEvent):
    """A transaction was begun."""

    kind: ClassVar = "begin"
    transaction: int


class OfTransaction(WorkerEvent):
    """About one whole transaction. `sources`: input partition → [first, next) offset that it read."""

    transaction: int
    sources: dict[str, Range]
    records: int


class Invoked(OfTransaction):
    """A worker is about to commit. `outputs`: `topic/partition` → number of records, first and last offset, as
    acknowledged (negative where the client was not told)."""

    kind: ClassVar = "invoke"
    outputs: dict[str, Placed]


class Outcome(OfTransaction):
    """How a transaction ended, as the worker was told: `ok`, `fail` (not committed), or `info` (not known)."""

    kind: ClassVar = "outcome"
    type: Literal["ok", "fail", "info"]


class ClientError(ProcessEvent):
    """An error of a client. `call` is the call that raised, `code` the client's own name of the error."""

    call: str
    code: str
    text: str
    abortable: bool = False
    fatal: bool = False
    transaction: int | None = None

    def __str__(self) -> str:
        return f"{self.call}: {self.code}{' (fatal)' if self.fatal else ''}"


class ClientFailed(ClientError):
    """A call of a client raised."""

    kind: ClassVar = "error"


class Died(ClientError):
    """A worker ended because of this error."""

    kind: ClassVar = "died"


class Sent(ProcessEvent):
    """How many inputs the generator has sent, and how many of them were acknowledged."""

    kind: ClassVar = "sent"
    records: int
    acknowledged: int


class Filled(ProcessEvent):
    """How many outputs a filler of a benchmark has sent."""

    kind: ClassVar = "filled"
    records: int


class Finished(ProcessEvent):
    """A generator, filler or observer has done its work. An observer names its topic, and how many records it could not
    take apart."""

    kind: ClassVar = "finished"
    records: int
    acknowledged: int | None = None
    topic: str | None = None
    not_understood: int | None = None


# Faults, in general


class FaultEvent(Event):
    """About one fault; `fault` is its id in the plan."""

    fault: str


class FaultBegins(FaultEvent):
    """A fault's moment has come. `open_transactions`: transactional ids; None when the cluster did not say."""

    kind: ClassVar = "fault-begins"
    name: str
    open_transactions: list[str] | None


class FaultTarget(FaultEvent):
    """What a fault hits: the role that the scenario names, and who had it. The further keys are those that some faults
    need to say what they hit."""

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
    """A fault was undone."""

    kind: ClassVar = "fault-healed"
    name: str


class FaultNotDone(FaultEvent):
    """A fault that did not come to its heal, and why."""

    reason: str


class FaultMissed(FaultNotDone):
    """A fault, or what it waited for, did not happen."""

    kind: ClassVar = "fault-missed"


class FaultFailed(FaultNotDone):
    """A fault raised an exception."""

    kind: ClassVar = "fault-failed"


class NoCommitUnderFault(FaultEvent):
    """No transaction was committed while the fault lasted."""

    kind: ClassVar = "no-commit-under-fault"


class Noted(FaultEvent):
    """Whatever else a fault has to say: `what` names it, `data` holds its figures. For faults from outside the tree."""

    kind: ClassVar = "noted"
    what: str
    data: dict[str, Scalar] = Field(default_factory=dict)


# Single faults


class NodeState(FaultEvent):
    """The state of a node's container before and after the fault acted on it, as the engine says."""

    kind: ClassVar = "node-state"
    node: str
    state: str
    before: str = "running"
    exit_code: int = 0


class NodeReplaced(FaultEvent):
    """A node was started again from another image."""

    kind: ClassVar = "node-replaced"
    node: str
    image: str
    before: str = ""


class LinksBroken(FaultEvent):
    """How many of the meant links Toxiproxy showed as broken: before the fault, and after it."""

    kind: ClassVar = "links-broken"
    broken: int
    of: int
    already: int = 0


class ToxiproxyRestarted(FaultEvent):
    """Toxiproxy had to be restarted to heal a link."""

    kind: ClassVar = "toxiproxy-restarted"


class Prepared(FaultEvent):
    """A coordinator has decided a transaction, and could not write its markers."""

    kind: ClassVar = "prepared"
    state: str
    coordinator: str


class Completed(FaultEvent):
    """Another coordinator has completed that transaction."""

    kind: ClassVar = "completed"
    state: str
    coordinator: str
    after_s: float


class Initialised(FaultEvent):
    """InitProducerId was answered."""

    kind: ClassVar = "initialised"
    waited_s: float


class NotInitialised(FaultEvent):
    """InitProducerId failed."""

    kind: ClassVar = "not-initialised"
    reason: str


class ZombieLate(FaultEvent):
    """A stopped worker was taken for dead: `successor` has committed in its place, and its own transaction is in
    `state`, each where the scenario asks for it."""

    kind: ClassVar = "zombie-late"
    successor: str = ""
    state: str = ""


class DeletedTo(BaseModel):
    """One partition of a delete-records: the group's committed offset and the log start before it, the low watermark
    that the brokers returned, and the end of the log."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    partition: int
    position: int
    low_watermark: int
    start: int = 0
    end: int | None = None


class RecordsDeleted(FaultEvent):
    """Records were deleted; `topic` is the workload's own name of it."""

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
    """A feature of the brokers was raised."""

    kind: ClassVar = "feature-raised"
    level: int


# The request proxy


class RequestEvent(FaultEvent):
    """About one request that a fault is aimed at."""

    link: str
    connection: int
    correlation: int


class RequestMatched(RequestEvent):
    """A request met a rule. `key` is its api key, `size` its bytes on the wire."""

    kind: ClassVar = "request-matched"
    action: str
    key: int
    version: int
    client: str
    size: int


class RequestDelivered(RequestEvent):
    """It was passed on to the broker."""

    kind: ClassVar = "request-delivered"


class RequestAnswered(RequestEvent):
    """Its response was passed on to the client."""

    kind: ClassVar = "request-answered"


class RequestDropped(RequestEvent):
    """Its response was dropped with the connection."""

    kind: ClassVar = "request-dropped"


class RequestLost(RequestEvent):
    """The broker's connection ended before it could be delivered."""

    kind: ClassVar = "request-lost"


@cache
def kinds() -> Mapping[str, type[Event]]:
    """Every kind of event by its name."""
    found: dict[str, type[Event]] = {}
    classes = list(Event.__subclasses__())
    while classes:
        each = classes.pop()
        classes += each.__subclasses__()
        if "kind" in vars(each):
            found[each.kind] = each
    return found


def parse(raw: Mapping[str, Any]) -> Event:
    """An event from the object that a line of JSON holds. Raises ValueError: `kind: key: what is wrong with it`."""
    kind = raw.get("event")
    model = kinds().get(kind) if isinstance(kind, str) else None
    if model is None:
        raise ValueError(f"unknown kind of event {kind!r:.60}")
    try:
        return model.model_validate({key: value for key, value in raw.items() if key != "event"})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ValueError(f"{kind}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
