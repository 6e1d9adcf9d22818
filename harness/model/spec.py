"""The models of a scenario's tables that other modules use, too: cluster, workload, faults and random faults."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from onceproof.harness.artifacts.clients import CLIENT, DEFAULT_KAFKA
from onceproof.harness.base import redaction
from onceproof.harness.model.databases import SQLITE
from onceproof.harness.model.workload import Workload

Phase = Literal["polled", "begun", "produced", "offsets-sent", "before-commit", "after-commit"]
# The phases that the requests of an application tell.
SEEN_PHASES = tuple(phase for phase in get_args(Phase) if phase != "polled")
# The phases at which the coordinator knows the worker's transaction as open.
OPEN_PHASES = ("produced", "offsets-sent", "before-commit")
FAULTS_MAX = 100
Count = Annotated[int, Field(gt=0, le=1_000_000)]
FEATURE = r"^[a-z][a-z0-9.]{0,99}$"
LEVEL_MAX = 32_767  # a level is an INT16 in Kafka's protocol


class Strict(BaseModel):
    """A frozen model that refuses unknown keys and does not convert types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class ClusterSpec(Strict):
    """The table `[cluster]` of a scenario. Runs with equal tables can share a kept cluster.

    - `system`: the system under test, as a registered name or `FILE.py:NAME`.
    - `version`: the system's version; `onceproof run --kafka` overrides it.
    - `brokers`: the number of brokers, which is always 3; there are always three controllers as well.
    - `features`: the feature levels with which the cluster is formatted, such as `{ "transaction.version" = 2 }`; other
      features have the default level of the release.
    - `settings`: broker and controller configuration by Kafka's property names; it overrides the harness's settings.
      What is written or printed has the names, and the values only of settings that are known to contain no secret.
    - `disk_mb`: the size in MB of a file system of its own for each broker's data, which `fill-disk` fills; by default
      they share the machine's. It is in memory, and needs root and Linux.
    """

    system: Annotated[str, Field(min_length=1)] = "kafka"
    version: str = DEFAULT_KAFKA
    brokers: Literal[3] = 3
    features: dict[Annotated[str, Field(pattern=FEATURE)], Annotated[int, Field(ge=0, le=LEVEL_MAX)]] = {}
    settings: dict[str, str | int | float | bool] = Field(default={}, repr=False)  # the values may be secrets
    disk_mb: Annotated[int, Field(ge=100, le=100_000)] | None = None

    def described(self) -> dict[str, Any]:
        """Return the table as it may be written to a file: without the values of settings that may be secrets."""
        return {**self.model_dump(mode="json"), "settings": redaction.shown(self.settings)}

    @property
    def has_secrets(self) -> bool:
        """Whether a setting may be a secret."""
        return redaction.HIDDEN in redaction.shown(self.settings).values()


class WorkloadSpec(Strict):
    """The table `[workload]` of a scenario: the pipeline, its load and its clients.

    - `name`: the workload, as a registered name or `FILE.py:NAME`. A scenario with `[app]` may have tables `[outputs]`
      instead, which say what the application must do.
    - `client`: the client library of the workers, `librdkafka` or `java`, or a version of it such as `java==3.9.2`. A
      version of `librdkafka` is the number of the confluent-kafka release that contains it. Without a version, it is
      the one that comes with onceproof.
    - `workers`: the number of worker processes; a workload with an intermediate topic needs at least two.
    - `records`: the minimum number of inputs. The generator continues at its rate until the last fault is healed. A run
      with fewer acknowledged inputs is vacuous.
    - `records_per_s`: the number of inputs that the generator sends per second.
    - `record_bytes`: the size of an input's value, in bytes.
    - `compression`: the `compression.type` of all producers: of the inputs, and of the outputs.
    - `keys`: the number of distinct keys.
    - `key_skew`: the exponent of the Zipf distribution of keys; with 0, all keys are equally frequent.
    - `partitions`: the number of partitions of the input topic and of each output topic.
    - `transaction_records`: the maximum number of inputs in a transaction.
    - `transaction_timeout_ms`: the producers' `transaction.timeout.ms`.
    - `message_timeout_ms`: the time in ms after which a producer gives up a record (`message.timeout.ms`,
      `delivery.timeout.ms`); at most `transaction_timeout_ms`.
    - `request_timeout_ms`: the time in ms after which a client gives up a request (`socket.timeout.ms`,
      `request.timeout.ms`); it is capped at `transaction_timeout_ms`.
    - `session_timeout_ms`: the consumers' `session.timeout.ms`, for the classic group protocol only.
    - `group_protocol`: the consumers' `group.protocol`; the consumer protocol (KIP-848) needs Kafka 4.0 or later.
    - `assignor`: the consumers' partition assignor, for the classic group protocol only.
    - `static_member`: whether workers are static members of their group (`group.instance.id`, KIP-345).
    - `auto_offset_reset`: the consumers' `auto.offset.reset`.
    - `database`: where a workload with tables, or an application that names `{database}`, keeps them: `sqlite` (a
      file in the run folder), `postgresql` (a container of the cluster, which faults can hit), or the JDBC URL of
      another PostgreSQL. The URL may name environment variables as `{env:NAME}`; the tables of the run remain there.
    - `observer`: whether a live observer reads the outputs during the run; without one, the check `readers` is not
      judged.
    """

    name: str = ""
    client: Annotated[str, Field(pattern=f"^{CLIENT}$")] = "librdkafka"
    workers: Annotated[int, Field(ge=1, le=4)] = 2
    records: Annotated[int, Field(gt=0, le=100_000_000)] = 50_000
    records_per_s: Annotated[int, Field(gt=0, le=200_000)] = 5_000
    record_bytes: Annotated[int, Field(ge=64, le=1_000_000)] = 200
    compression: Literal["none", "gzip", "lz4", "snappy", "zstd"] = "none"
    keys: Count = 1_000
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
    database: Annotated[str, Field(pattern=r"^(sqlite|postgresql|jdbc:postgresql:.+)$", max_length=1_000)] = SQLITE
    observer: bool = True


class When(Strict):
    """A moment in a worker's processing: a phase of one of its transactions.

    - `worker`: the number of the worker, from 0.
    - `phase`: the phase of the transaction.
    - `count`: the number of the transaction, counted from 1 over all incarnations of the worker. If that transaction
      does not reach the phase, the next one that does is taken.
    """

    worker: Annotated[int, Field(ge=0, le=3)]
    phase: Phase
    count: Count


class FaultSpec(Strict):
    """The keys of every fault; the model of each fault adds its own. Exactly one of `at_s`, `when` and `after` is set.

    - `name`: the fault, as a registered name or `FILE.py:NAME`.
    - `at_s`: starts the fault this many seconds after the first inputs were sent.
    - `when`: starts the fault when a worker reaches this phase; the worker waits there until the fault is injected.
    - `after`: starts the fault when an earlier fault, given by its number from 0, is healed.
    - `lasts_s`: the time in seconds until the fault is healed, unless the fault decides itself when it ends. A fault of
      at least three seconds may last longer, until a transaction is committed.
    """

    name: str
    at_s: Annotated[float, Field(ge=0, le=3600)] | None = None
    when: When | None = None
    after: Annotated[int, Field(ge=0, lt=FAULTS_MAX)] | None = None
    lasts_s: Annotated[float, Field(gt=0, le=600)] = 5.0

    @property
    def stops(self) -> Mapping[str, When]:
        """The moments at which a worker stops and waits for the nemesis, by the suffix of the stop's id.

        The id of a stop is the fault's id followed by this suffix.
        """
        return {"": self.when} if self.when else {}

    def topics(self, workload: Workload) -> Sequence[str]:
        """Return the topics that the fault's key `topic` may name, by the workload's own names."""
        return workload.topics

    @model_validator(mode="after")
    def _starts_once(self) -> "FaultSpec":
        if sum(each is not None for each in (self.at_s, self.when, self.after)) != 1:
            raise ValueError("give exactly one of at_s, when and after")
        return self


class RecordedFault(FaultSpec):
    """The keys of a fault by file, as a run folder has them. Their model is code of the file, which is not loaded."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)


class RandomSpec(Strict):
    """The table `[random]` of a scenario: faults drawn from the seed, in addition to those under `[[faults]]`.

    - `periods`: the number of periods. Each has a set of one to three faults, or none in one case of four.
    - `period_s`: the length of a period in seconds.
    """

    periods: Annotated[int, Field(ge=1, le=100)] = 2
    period_s: Annotated[float, Field(ge=20, le=600)] = 30.0
