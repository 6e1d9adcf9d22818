"""F15: a feature of the brokers is raised while workers run (KIP-584), such as transaction.version (KIP-890).

    [[faults]]
    name = "raise-feature"
    feature = "transaction.version"
    level = 2                        # default: the highest that every broker has
    at_s = 5

It is not lowered again, and the cluster is not used again.
"""

from typing import Annotated, ClassVar

from pydantic import Field as Key

from onceproof.harness.base.deadlines import until
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.record.events import FaultTarget, FeatureRaised
from onceproof.harness.record.history import Events

_DEADLINE_S = 30.0


class RaiseFeatureSpec(FaultSpec):
    feature: str
    level: Annotated[int, Key(ge=1)] | None = None


class RaiseFeature:
    name: ClassVar = "raise-feature"
    about: ClassVar = "a feature of the brokers is raised while workers run"
    params: ClassVar = RaiseFeatureSpec
    needs: ClassVar = frozenset({"features"})

    def inject(self, context: FaultContext, fault: PlannedFault[RaiseFeatureSpec]) -> Undo:
        spec, admin = fault.spec, context.cluster.admin
        level = spec.level or admin.highest_feature(spec.feature)
        context.cluster.used_up = True
        context.note(
            FaultTarget(
                fault=fault.id,
                role=spec.feature,
                node=f"{spec.feature} to {level}",
                before=admin.features().get(spec.feature, 0),
                level=level,
            )
        )
        admin.raise_feature(spec.feature, level)
        until(
            f"{spec.feature} to be {level}", lambda: admin.features().get(spec.feature) == level, deadline_s=_DEADLINE_S
        )
        context.note(FeatureRaised(fault=fault.id, level=level))
        return lambda: None

    def missing(self, fault: PlannedFault[RaiseFeatureSpec], events: Events) -> str | None:
        target = events.the(FaultTarget, fault=fault.id)
        if events.first(FeatureRaised, fault=fault.id) is None:
            return f"{target.role} was not raised"
        if (target.before or 0) >= (target.level or 0):
            return f"{target.role} was {target.before} before"
        return None


FAULT = RaiseFeature()
