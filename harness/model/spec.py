"""The parts of a scenario that others than the scenario need: cluster, workload, and what every fault may say."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from onceproof.harness.artifacts.clients import CLIENT, DEFAULT_KAFKA
from onceproof.harness.model.workload import Workload

Phase = Literal["polled", "begun", "produced", "offsets-sent", "before-commit", "after-commit"]
Positive = Annotated[int, Field(gt=0)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ClusterSpec(Strict):
    """What a cluster must be; two runs with an equal one can share a cluster that is kept."""

    system: Annotated[str, Field(min_length=1)] = "kafka"
    version: str = DEFAULT_KAFKA
    brokers: Literal[3] = 3
    features: dict[str, Annotated[int, Field(ge=0)]] = {}
    settings: dict[str, str | int | float | bool] = {}


class WorkloadSpec(Strict):
    """What runs on it. Sizes in bytes, times in milliseconds unless the name says otherwise."""

    name: str
    client: Annotated[str, Field(pattern=f"^{CLIENT}$")] = "librdkafka"
    workers: Annotated[int, Field(ge=1, le=4)] = 2
    records: Annotated[int, Field(gt=0, le=100_000_000)] = 50_000
    records_per_s: Annotated[int, Field(gt=0, le=200_000)] = 5_000
    record_bytes: Annotated[int, Field(ge=64, le=1_000_000)] = 200
    keys: Positive = 1_000
    key_skew: Annotated[float, Field(ge=0, le=3)] = 0.0
    partitions: Annotated[int, Field(ge=1, le=64)] = 6
    transaction_records: Annotated[int, Field(gt=0, le=100_000)] = 500
    transaction_timeout_ms: Annotated[int, Field(ge=1000, le=900_000)] = 6_000
    message_timeout_ms: Annotated[int, Field(ge=500, le=900_000)] = 5_000
    request_timeout_ms: Annotated[int, Field(ge=500, le=60_000)] = 10_000
    session_timeout_ms: Annotated[int, Field(ge=1000, le=300_000)] = 4_000
    group_protocol: Literal["classic", "consumer"] = "classic"
    assignor: Literal["range", "roundrobin", "cooperative-sticky"] = "range"
    static_member: bool = False
    auto_offset_reset: Literal["earliest", "latest"] = "earliest"
    observer: bool = True


class When(Strict):
    """The worker's `count`-th transaction (over all its incarnations), at that phase."""

    worker: Annotated[int, Field(ge=0, le=3)]
    phase: Phase
    count: Positive


class FaultSpec(Strict):
    """What every fault may say; each fault's own model adds its keys. It begins `at_s` seconds after the work, `when` a
    worker is at a phase, or `after` the fault of that number (from 0) is healed."""

    name: str
    at_s: Annotated[float, Field(ge=0, le=3600)] | None = None
    when: When | None = None
    after: Annotated[int, Field(ge=0)] | None = None
    lasts_s: Annotated[float, Field(gt=0, le=600)] = 5.0

    @property
    def stops(self) -> Mapping[str, When]:
        """The moments at which a worker stops and waits for the nemesis, by what is added to the fault's id."""
        return {"": self.when} if self.when else {}

    def topics(self, workload: Workload) -> Sequence[str]:
        """The topics, by the workload's own names, that its key `topic` may name."""
        return workload.topics

    @model_validator(mode="after")
    def _starts_once(self) -> "FaultSpec":
        if sum(each is not None for each in (self.at_s, self.when, self.after)) != 1:
            raise ValueError("give exactly one of at_s, when and after")
        return self


class RandomSpec(Strict):
    """Faults drawn from the seed, beside those that are named: a set for each period (F17)."""

    periods: Annotated[int, Field(ge=1, le=100)] = 2
    period_s: Annotated[float, Field(ge=20, le=600)] = 30.0
