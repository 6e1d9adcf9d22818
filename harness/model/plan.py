"""The plan: a scenario with every random choice made from a seed. The same inputs give the same bytes.

Planning uses neither the clock nor the network. The seed determines the payloads, each `random` in a target, and the
faults of random periods. It does not determine which node has a role when a fault is injected; that is resolved during
the run and recorded in the history.
"""

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter

from onceproof.harness.base import redaction
from onceproof.harness.model import random_faults, registry
from onceproof.harness.model.scenario import Scenario, recorded
from onceproof.harness.model.spec import FaultSpec, Strict
from onceproof.harness.record import documents

SCHEMA_VERSION = 1
TAIL_S = 1.5
_LATEST_S = 300
_SLOW_S = 120  # on a slow machine a fault may end this much later than planned


class _StoredFault(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)
    id: str


class _Document(Strict):
    schema_version: int
    seed: int
    scenario: dict[str, Any]
    faults: list[_StoredFault]
    records_max: int


_DOCUMENT = TypeAdapter(_Document)
Spec = TypeVar("Spec", bound=FaultSpec, covariant=True)


@dataclass(frozen=True, kw_only=True)
class PlannedFault(Generic[Spec]):
    """A fault whose random choices are made.

    `id` is `<index>-<name>` and identifies the fault in the history; `spec` has the fault's keys, in its own model.
    """

    id: str
    spec: Spec

    @property
    def name(self) -> str:
        """The name of the fault, as in the scenario."""
        return self.spec.name


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A scenario with its seed and its faults, in the order of their numbers.

    `records_max` is the maximum number of inputs that the generator sends.
    """

    scenario: Scenario
    seed: int
    faults: tuple[PlannedFault[FaultSpec], ...]
    records_max: int

    @property
    def lasts_s(self) -> float:
        """The planned duration of the workload in seconds, without delays.

        It is the time to send the records at their rate, the end of the last fault that starts at a time, or the end of
        the last random period, whichever is later.
        """
        work, periods = self.scenario.workload, self.scenario.random
        drawn_s = 0.0 if periods is None else periods.periods * periods.period_s
        return max(work.records / work.records_per_s, _ends_s(self.faults), drawn_s)

    @property
    def digest(self) -> str:
        """The first eight hexadecimal digits of the plan's SHA-256; topics, groups and transactional ids contain it."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:8]

    def to_json(self) -> str:
        """Return the plan as JSON with sorted keys and without secrets; equal plans give equal bytes.

        The values of settings are shown as `redaction.shown` does. So a plan is enough to verify a run; to repeat the
        run, its scenario is needed.
        """
        scenario = self.scenario.model_dump(mode="json", exclude={"faults"})
        scenario["client"] = {"config": redaction.shown(self.scenario.client_config)}
        scenario["cluster"]["settings"] = redaction.shown(self.scenario.cluster.settings)
        document = {
            "schema_version": SCHEMA_VERSION,
            "seed": self.seed,
            "scenario": scenario,
            "faults": [{"id": fault.id, **fault.spec.model_dump(mode="json")} for fault in self.faults],
            "records_max": self.records_max,
        }
        return json.dumps(document, indent=1, sort_keys=True) + "\n"


def make(scenario: Scenario, seed: int) -> Plan:
    """Make every random choice of a scenario from a seed, and return the plan."""
    dice = random.Random(f"onceproof {scenario.name} {seed}")
    drawn = random_faults.faults(scenario, dice)  # after the scenario's own faults, from the same dice
    specs = [*(_choose(spec, dice, scenario) for spec in scenario.faults), *drawn]
    faults = tuple(
        PlannedFault(id=f"{index}-{registry.fault(spec.name).name}", spec=spec) for index, spec in enumerate(specs)
    )
    work = scenario.workload
    latest_s = max(_LATEST_S, _ends_s(faults) + _SLOW_S)
    records_max = max(work.records, round(work.records_per_s * latest_s)) + round(work.records_per_s * TAIL_S)
    return Plan(scenario=scenario, seed=seed, faults=faults, records_max=records_max)


def read(path: Path) -> Plan:
    """Read a plan.json without loading any file that it names (`scenario.recorded`).

    Raises BadInput with the file and the key when it is missing, damaged or of another schema version.
    """
    raw = documents.read(path, schema_version=SCHEMA_VERSION, missing="a run folder has a plan.json")
    stored = documents.parse(path, raw, _DOCUMENT)
    faults = [each.model_dump(exclude={"id"}) for each in stored.faults]
    scenario = recorded({**stored.scenario, "faults": faults}, where=str(path))
    planned = tuple(
        PlannedFault(id=each.id, spec=spec) for each, spec in zip(stored.faults, scenario.faults, strict=True)
    )
    return Plan(scenario=scenario, seed=stored.seed, faults=planned, records_max=stored.records_max)


def _ends_s(faults: Sequence[PlannedFault[FaultSpec]]) -> float:
    """Return the planned end of the last fault with `at_s`, in seconds; 0 if there is none."""
    ends = (fault.spec.at_s + fault.spec.lasts_s for fault in faults if fault.spec.at_s is not None)
    return max(ends, default=0.0)


def _choose(spec: FaultSpec, dice: random.Random, scenario: Scenario) -> FaultSpec:
    target = getattr(spec, "target", None)
    if not isinstance(target, str) or not target.endswith("-random"):
        return spec
    kind = target.removesuffix("-random")
    number = dice.randrange(scenario.workload.workers) if kind == "worker" else dice.randint(1, 3)
    return registry.fault(spec.name).params.model_validate(spec.model_dump() | {"target": f"{kind}-{number}"})
