"""A scenario: what runs, what breaks, and what must come out. TOML in, frozen models out, one clear line when wrong.

    name = "copy-broker-killed"
    about = "…"
    [cluster]   version, features, settings
    [workload]  name, workers, records, records_per_s, …
    [client.config]   keys for the client as they are, where its own name for them is known
    [[faults]]  name, and when it starts: at_s, or when = { worker, phase, count }, or after = 0 (that fault is healed)
    [random]    faults drawn from the seed: periods, period_s
    [collect]   read_uncommitted
    [expect]    verdict or findings, and what must have happened
    [bug]       issue, and where it is fixed (harness/bugs.py)

Every key is checked; what a fault may say is checked by the fault's own model.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError, model_validator

from onceproof.harness.base.errors import BadInput
from onceproof.harness.model import registry, targets
from onceproof.harness.model.bug import BugSpec, ClientErrorSpec
from onceproof.harness.model.spec import ClusterSpec, FaultSpec, RandomSpec, Strict, WorkloadSpec

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
]


class Expect(Strict):
    """What must come out. `findings` is exact: a class that is not named fails, and so does one that is missing.

    `client_error`: what a worker's client must have met, which is a matter of liveness and apart from the verdict.
    `commit_under_fault`: whether somebody must commit while a fault of three seconds or more lasts; false where the
    cluster cannot promise it.
    """

    verdict: Literal["valid", "invalid"] | None = None
    findings: tuple[FindingClass, ...] = Field(default=(), strict=False)
    client_error: ClientErrorSpec | None = None
    open_transactions_at_fault: Annotated[int, Field(ge=0)] = 0
    commit_under_fault: bool = True

    @model_validator(mode="after")
    def _agree(self) -> "Expect":
        if self.verdict == "valid" and self.findings:
            raise ValueError("a valid run has no findings: give verdict or findings")
        return self

    @property
    def expected_verdict(self) -> str:
        return self.verdict or ("invalid" if self.findings else "valid")


class CollectSpec(Strict):
    """`read_uncommitted`: the outputs are read once more under it, and must be what the log says of aborted ones."""

    read_uncommitted: bool = False


class Scenario(Strict):
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,79}$")]
    about: Annotated[str, Field(min_length=1)]
    cluster: ClusterSpec = ClusterSpec()
    workload: WorkloadSpec
    client: dict[Literal["config"], dict[str, str | int | float | bool]] = Field(default_factory=dict)
    faults: tuple[Any, ...] = ()
    checks: Annotated[tuple[str, ...], Field(strict=False)] = ()
    random: RandomSpec | None = None
    collect: CollectSpec = CollectSpec()
    expect: Expect = Expect()
    bug: BugSpec | None = None

    @property
    def client_config(self) -> Mapping[str, str | int | float | bool]:
        return self.client.get("config", {})


def load(path: Path) -> Scenario:
    """Read and check one scenario file. Raises BadInput with file, key and allowed values."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror if isinstance(error, OSError) else error}") from None
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: not TOML: {error}") from None
    return parse(raw, where=str(path))


def parse(raw: Mapping[str, Any], *, where: str) -> Scenario:
    """Check a scenario that is already a mapping (as `load` does for a file)."""
    faults = raw.get("faults", [])
    if not isinstance(faults, list):
        raise BadInput(f"{where}: faults: expected tables [[faults]]")
    specs = tuple(_fault(spec, index, where) for index, spec in enumerate(faults))
    try:
        scenario = Scenario.model_validate({**raw, "faults": specs})
    except ValidationError as error:
        raise BadInput(f"{where}: {_first(error, Scenario)}") from None
    _cross_check(scenario, where)
    return scenario


def _fault(raw: Any, index: int, where: str) -> FaultSpec:
    place = f"{where}: faults[{index}]"
    if not isinstance(raw, Mapping) or not isinstance(raw.get("name"), str):
        raise BadInput(f"{place}.name: missing; allowed: {', '.join(registry.names('fault'))}")
    try:
        model = registry.fault(raw["name"]).params
    except BadInput as error:
        raise BadInput(f"{place}.name: {error}") from None
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise BadInput(f"{place}.{_first(error, model)}") from None


def _check_system(scenario: Scenario, where: str) -> None:
    """The system must be there, have this version, and be able to do what the faults need."""
    try:
        system = registry.system(scenario.cluster.system)
    except BadInput as error:
        raise BadInput(f"{where}: cluster.system: {error}") from None
    if not re.fullmatch(system.versions, scenario.cluster.version):
        raise BadInput(f"{where}: cluster.version: {scenario.cluster.version}; allowed: versions as {system.versions}")
    for index, spec in enumerate(scenario.faults):
        needed: frozenset[str] = getattr(registry.fault(spec.name), "needs", frozenset())
        if missing := sorted(needed - system.capabilities):
            says = f"{spec.name} needs {', '.join(missing)}, which the system {system.name} does not have"
            raise BadInput(f"{where}: faults[{index}].name: {says}")


def _cross_check(scenario: Scenario, where: str) -> None:
    _check_system(scenario, where)
    work = scenario.workload
    try:
        workload = registry.workload(work.name)
    except BadInput as error:
        raise BadInput(f"{where}: workload.name: {error}") from None
    if workload.intermediate_topic and work.workers < 2:
        raise BadInput(f"{where}: workload.workers: {work.workers}; allowed: 2 to 4, since a chain has two services")
    if work.message_timeout_ms > work.transaction_timeout_ms:
        raise BadInput(f"{where}: workload.message_timeout_ms: at most transaction_timeout_ms")
    for index, fault in enumerate(scenario.faults):
        if fault.after is not None and fault.after >= index:
            raise BadInput(f"{where}: faults[{index}].after: {fault.after}; allowed: the number of an earlier fault")
        if problem := targets.wrong(fault, work, workload):
            raise BadInput(f"{where}: faults[{index}].{problem}")


def _first(error: ValidationError, model: type[BaseModel]) -> str:
    """The first of pydantic's errors, as `key: problem`, with the keys allowed where one is unknown."""
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"]) or "scenario"
    problem = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        return f"{key}: unknown key; allowed: {', '.join(_keys_at(model, first['loc'][:-1]))}"
    return f"{key}: {problem} (got {first['input']!r:.60})"


def _keys_at(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    for part in path:
        if isinstance(part, int):  # which one of a list: they are all alike
            continue
        annotation = model.model_fields[str(part)].annotation
        candidates = [annotation, *getattr(annotation, "__args__", ())]
        model = next(c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel))
    return sorted(model.model_fields)
