"""F15: a feature of the brokers is raised while workers run (KIP-584), such as transaction.version (KIP-890).

    [[faults]]
    name = "raise-feature"
    feature = "transaction.version"
    level = 2                        # default: the highest that every broker has
    at_s = 5

It is not lowered again, and the cluster is not used again.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field as Key

from faults._told import told
from harness.field import Field
from harness.plan import PlannedFault
from harness.protocols import Event, Undo
from harness.scenario import FaultSpec
from harness.wait import until

_DEADLINE_S = 30.0


class RaiseFeatureSpec(FaultSpec):
    feature: str
    level: Annotated[int, Key(ge=1)] | None = None


class RaiseFeature:
    name: ClassVar = "raise-feature"
    about: ClassVar = "a feature of the brokers is raised while workers run"
    params: ClassVar = RaiseFeatureSpec

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        spec, admin = fault.spec, field.cluster.admin
        assert isinstance(spec, RaiseFeatureSpec)
        level = spec.level or admin.highest_feature(spec.feature)
        field.cluster.used_up = True
        field.note("fault-target", fault=fault.id, role=spec.feature, node=f"{spec.feature} to {level}",
                   before=admin.features().get(spec.feature, 0), level=level)  # fmt: skip
        admin.raise_feature(spec.feature, level)
        until(f"{spec.feature} to be {level}", lambda: admin.features().get(spec.feature) == level,
              deadline_s=_DEADLINE_S)  # fmt: skip
        field.note("feature-raised", fault=fault.id, level=level)
        return lambda: None

    def missing(self, fault: PlannedFault, events: Sequence[Event]) -> str | None:
        target = told("fault-target", fault, events)
        if not any(e["event"] == "feature-raised" and e["fault"] == fault.id for e in events):
            return f"{target['role']} was not raised"
        if target["before"] >= target["level"]:
            return f"{target['role']} was {target['before']} before"
        return None


FAULT = RaiseFeature()
