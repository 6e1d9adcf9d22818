"""The events of faults: those that every fault has, and those of single faults."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from onceproof.harness.record.events.base import FaultEvent, Scalar


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


class Expired(FaultEvent):
    """What the brokers knew of a producer has expired: its transaction, transactional id or producer id.

    `after_s` is the time in seconds since its worker began to wait for that.
    """

    kind: ClassVar = "expired"
    what: str
    after_s: float


class Reassigned(FaultEvent):
    """The replicas of a topic were reassigned: one was `taken` from each partition, or `added` to it again.

    `replicas` is the smallest number of replicas that a partition has now, and `leaders_moved` the number of partitions
    with another leader than before the fault.
    """

    kind: ClassVar = "reassigned"
    step: str
    replicas: int
    leaders_moved: int


class OutOfSync(FaultEvent):
    """A partition has one live replica: when it was `alone`, and `before-the-others` are started.

    `broker` has that replica, `isr` was in sync before the others were killed, and `leader` leads the partition now; it
    is None if nobody does, and another broker's number if the controller does not know yet that it is dead.
    """

    kind: ClassVar = "out-of-sync"
    step: str
    broker: int
    isr: list[int]
    leader: int | None


class FeatureRaised(FaultEvent):
    """A finalized feature of the cluster was raised to `level`."""

    kind: ClassVar = "feature-raised"
    level: int
