"""A scenario: a TOML file that names the workload of a run, its faults and the expected result.

    name = "copy-broker-killed"
    about = "…"
    [cluster]           system, version, features, settings
    [app]               command, env: an application in place of the workers
    [workload]          name, workers, records, records_per_s, …
    [client.config]     configuration of the Kafka clients, by the client's own names
    [[faults]]          name, and the start: at_s, or when = { worker, phase, count }, or after = 0 (a healed fault)
    [random]            faults drawn from the seed: periods, period_s
    [collect]           read_uncommitted, requests
    [expect]            verdict or findings, and conditions without which the run is vacuous
    [bug]               issue, and the versions in which it is fixed (harness/model/bug.py)

Every key is validated; the keys of a fault are validated by the fault's own model. An error is one line with the file,
the key and the allowed values.
"""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from onceproof.harness.base.errors import BadInput
from onceproof.harness.base.redaction import Redaction
from onceproof.harness.model import agreement, problems, registry
from onceproof.harness.model import outputs as described
from onceproof.harness.model.app import AppSpec
from onceproof.harness.model.bug import BugSpec, ClientErrorSpec
from onceproof.harness.model.outputs import LoadSpec, ModelSpec, OutputSpec, Topic
from onceproof.harness.model.progress import DoneSpec
from onceproof.harness.model.spec import (
    FAULTS_MAX,
    ClusterSpec,
    FaultSpec,
    RandomSpec,
    RecordedFault,
    Strict,
    WorkloadSpec,
)
from onceproof.harness.model.workload import Workload

_BYTES_MAX = 1_000_000
FindingClass = Literal[
    "lost",
    "duplicate",
    "phantom",
    "corrupted",
    "aborted-read",
    "torn-transaction",
    "reordered",
    "zombie-write",
    "inconsistent-read",
    "input-lost",
    "offset-divergence",
    "hung-transaction",
    "reset-skip",
    "reset-reprocess",
    "replica-divergence",
    "wrong-aggregate",
    "unprotected",
]


class Expect(Strict):
    """The table `[expect]` of a scenario: the expected result of a run.

    - `verdict`: the expected verdict (default: `invalid` if `findings` is set, otherwise `valid`).
    - `findings`: the exact set of anomaly classes; the expectation fails if a class is missing or additional.
    - `client_error`: an error that a worker's client must have reported. It concerns liveness and does not change the
      verdict.
    - `open_transactions_at_fault`: the minimum number of transactions that are open when each fault is injected;
      otherwise the run is vacuous.
    - `commit_under_fault`: whether a transaction must be committed while a fault of at least three seconds lasts; set
      it to false if the cluster cannot commit during the fault.
    """

    verdict: Literal["valid", "invalid"] | None = None
    findings: tuple[FindingClass, ...] = Field(default=(), strict=False)
    client_error: ClientErrorSpec | None = None
    open_transactions_at_fault: Annotated[int, Field(ge=0, le=64)] = 0
    commit_under_fault: bool = True

    @model_validator(mode="after")
    def _agree(self) -> "Expect":
        if self.verdict == "valid" and self.findings:
            raise ValueError("a valid run has no findings: give verdict or findings")
        return self

    @property
    def expected_verdict(self) -> str:
        """The expected verdict: `verdict`, or the one that `findings` implies."""
        return self.verdict or ("invalid" if self.findings else "valid")


class CollectSpec(Strict):
    """The table `[collect]` of a scenario: data that is collected in addition.

    - `read_uncommitted`: whether the outputs are read a second time under `read_uncommitted`. The records that a
      `read_committed` reader does not see must then be as many as the log shows as aborted.
    - `requests`: whether the requests of the workers' clients are recorded, and what is unsafe in them is reported
      as lints. The workers' connections then lead through the request proxy.
    """

    read_uncommitted: bool = False
    requests: bool = False


class Scenario(Strict):
    """The top level of a scenario file.

    - `name`: the name of the scenario; the run's folder, topics and transactional ids derive from it.
    - `about`: a description of one or two sentences, which the report prints.
    - `cluster`: the cluster that the run needs.
    - `workload`: the pipeline that runs on the cluster, its load and its clients.
    - `app`: an application that runs in place of onceproof's own workers; the workload says what it must do, or
      `outputs`.
    - `done`: what shows that an application has processed every input.
    - `load`: the inputs of an application that `outputs` describes.
    - `outputs`: the topics that the application writes, and which input each output comes from.
    - `model`: what the outputs must contain.
    - `client`: the table `[client.config]`, configuration of the Kafka clients of the workers, the generator and the
      observers, by the clients' own names. It overrides the harness's settings, except addresses and names. What is
      written or printed has the names, and the values only of settings that are known to contain no secret.
    - `faults`: the faults, in the order of their numbers.
    - `checks`: additional checks, as registered names or `FILE.py:NAME`; they run after the registered ones.
    - `random`: faults drawn from the seed, in addition to `faults`.
    - `collect`: data that is collected in addition.
    - `expect`: the expected result.
    - `bug`: the published bug that the scenario reproduces.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,79}$")]
    about: Annotated[str, Field(min_length=1, max_length=2_000, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$")]
    cluster: ClusterSpec = ClusterSpec()
    workload: WorkloadSpec = WorkloadSpec()
    app: AppSpec | None = None
    done: DoneSpec = DoneSpec()
    load: LoadSpec = LoadSpec()
    outputs: dict[Topic, OutputSpec] = Field(default={}, max_length=10)
    model: ModelSpec | None = None
    client: dict[Literal["config"], dict[str, str | int | float | bool]] = Field(default_factory=dict, repr=False)
    faults: tuple[Any, ...] = ()
    checks: Annotated[tuple[str, ...], Field(strict=False, max_length=100)] = ()
    random: RandomSpec | None = None
    collect: CollectSpec = CollectSpec()
    expect: Expect = Expect()
    bug: BugSpec | None = None

    @property
    def client_config(self) -> Mapping[str, str | int | float | bool]:
        """The table `[client.config]`."""
        return self.client.get("config", {})

    @property
    def pipeline(self) -> Workload:
        """What the workers or the application must do. Raises BadInput when there is no such workload."""
        if self.outputs and self.app is not None:
            return described.workload(self.load, self.outputs, self.model, self.app)
        return registry.workload(self.workload.name)

    @property
    def own_sql(self) -> bool:
        """Whether the workload has SQL that no test of the package that registers it has executed."""
        return bool(self.outputs) or ":" in self.workload.name

    @property
    def redaction(self) -> Redaction:
        """Replaces the values of this scenario's settings that may be secrets."""
        return Redaction(self.client_config, self.cluster.settings)


def load(path: Path) -> Scenario:
    """Read and validate a scenario file. Raises BadInput with the file, the key and the allowed values."""
    try:
        if path.exists() and not path.is_file():  # a pipe or a device might never end
            raise BadInput(f"{path}: not a file")
        if path.stat().st_size > _BYTES_MAX:
            raise BadInput(f"{path}: {path.stat().st_size} bytes; allowed: a scenario of at most {_BYTES_MAX} bytes")
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # a ValueError: not UTF-8, or a null character in the name
        raise BadInput(f"{path}: cannot be read: {error.strerror if isinstance(error, OSError) else error}") from None
    try:
        raw = tomllib.loads(text)
    except RecursionError:
        raise BadInput(f"{path}: not a scenario: arrays or tables are nested too deeply") from None
    except ValueError as error:  # not TOML, or an integer of thousands of digits
        raise BadInput(f"{path}: not TOML: {error}") from None
    return parse(raw, where=str(path))


def parse(raw: Mapping[str, Any], *, where: str) -> Scenario:
    """Validate a scenario that is already a mapping; `where` names it in messages. Raises BadInput as `load` does."""
    scenario = _validated(raw, where, _model)
    agreement.check(scenario, where, open_transactions=scenario.expect.open_transactions_at_fault)
    return scenario


def recorded(raw: Mapping[str, Any], *, where: str) -> Scenario:
    """Validate the scenario of a recorded run. Raises BadInput as `load` does.

    A run folder may come from anyone, so no file that the scenario names is loaded. The keys of a fault by file are
    kept as they are (`RecordedFault`), and the workload, the checks and the system are not looked for.
    """
    return _validated(raw, where, lambda name: RecordedFault if ":" in name else _model(name))


def _model(name: str) -> type[FaultSpec]:
    return registry.fault(name).params


def _validated(raw: Mapping[str, Any], where: str, model: Callable[[str], type[FaultSpec]]) -> Scenario:
    """Validate every key of a scenario; `model` returns the model of a fault's keys, by the fault's name."""
    faults = raw.get("faults", [])
    if not isinstance(faults, list):
        raise BadInput(f"{where}: faults: expected tables [[faults]]")
    if len(faults) > FAULTS_MAX:
        raise BadInput(f"{where}: faults: {len(faults)} of them; allowed: at most {FAULTS_MAX}")
    specs = tuple(_fault(spec, index, where, model) for index, spec in enumerate(faults))
    try:
        return Scenario.model_validate({**raw, "faults": specs})
    except ValidationError as error:
        raise BadInput(f"{where}: {problems.first(error, Scenario)}") from None


def _fault(raw: Any, index: int, where: str, model_of: Callable[[str], type[FaultSpec]]) -> FaultSpec:
    place = f"{where}: faults[{index}]"
    if not isinstance(raw, Mapping) or not isinstance(raw.get("name"), str):
        raise BadInput(f"{place}.name: missing; allowed: {', '.join(registry.names('fault'))}")
    try:
        model = model_of(raw["name"])
    except BadInput as error:
        raise BadInput(f"{place}.name: {error}") from None
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise BadInput(f"{place}.{problems.first(error, model)}") from None
