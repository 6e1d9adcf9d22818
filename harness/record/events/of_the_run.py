"""The events of a run as a whole: its beginning, its cluster, and how it ended."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from onceproof.harness.record.events.base import Event


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
    """Offsets summed over all partitions, once per second.

    `behind` has how far the last stable offset of each output partition (`topic/partition`) is behind its high
    watermark; partitions where they are equal are left out.
    """

    kind: ClassVar = "sample"
    input_end: int
    committed: int
    output_hw: int
    output_lso: int
    behind: dict[str, int] = Field(default_factory=dict)


class ReplicasChanged(Event):
    """A partition has another leader or in-sync replicas (node ids) than in the sample before, or is seen first.

    `topic` is the workload's own name, or that of an internal topic, whose leaders are the coordinators. `leader` is
    None while there is none.
    """

    kind: ClassVar = "replicas"
    topic: str
    partition: int
    leader: int | None
    isr: list[int]
