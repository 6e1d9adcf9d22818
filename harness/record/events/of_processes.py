"""The events of the processes of a run: workers, the generator and the observers."""

from typing import ClassVar, Literal, Self

from onceproof.harness.record.events.base import Event, Placed, ProcessEvent, Range, WorkerEvent


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


class Spawned(ProcessEvent):
    """An instance of an application was started: the number of its process group, or the name of its container."""

    kind: ClassVar = "spawned"
    group: int = 0
    container: str = ""


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
    offsets are -1 if an acknowledgement had no offset. `sent` is when an application sent its offsets; null if it sent
    none, and for onceproof's own workers, which begin a transaction after they have read its inputs.
    """

    kind: ClassVar = "invoke"
    outputs: dict[str, Placed]
    sent: float | None = None


class Outcome(OfTransaction):
    """A transaction ended, as far as the worker knows: `ok` (committed), `fail` (not committed) or `info` (unknown)."""

    kind: ClassVar = "outcome"
    type: Literal["ok", "fail", "info"]

    def sharing(self, call: Invoked) -> Self:
        """Share `sources` with the call of commit before it if they are equal, so that they are in memory once."""
        if self.sources == call.sources:
            self.__dict__["sources"] = call.sources
        return self


class ClientError(ProcessEvent):
    """An error of a Kafka client.

    `call` is the call that failed, and `code` the client's own name of the error. `abortable` and `fatal` are the
    client's own classification of the error. An application reports nothing: `call` is then the request that a broker
    refused, `code` the name of the error in the response, and the classification that of `record/refusals.py`.
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
    """A generator, filler or observer has finished; an observer reports its topic.

    `bait` is how many inputs a generator has aborted on purpose; None if it was not asked to.
    """

    kind: ClassVar = "finished"
    records: int
    acknowledged: int | None = None
    bait: int | None = None
    topic: str | None = None
