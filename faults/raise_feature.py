"""Raise a feature of the brokers, such as transaction.version (KIP-890), while workers run (KIP-584).

    [[faults]]
    name = "raise-feature"
    feature = "transaction.version"
    level = 2                        # default: the highest that every broker supports
    at_s = 5

The feature is not lowered again, and so the cluster is not reused for another run.
"""

from typing import Annotated, ClassVar

from pydantic import Field as Key

from onceproof.harness.base.deadlines import until
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.spec import FEATURE, LEVEL_MAX, FaultSpec
from onceproof.harness.record.events import FaultTarget, FeatureRaised
from onceproof.harness.record.history import Events

_DEADLINE_S = 30.0


class RaiseFeatureSpec(FaultSpec):
    """The keys of `raise-feature`.

    - `feature`: the feature's name, such as `transaction.version` or `metadata.version`.
    - `level`: the level to which it is raised, at least 1 (default: the highest that every broker supports).
    """

    feature: Annotated[str, Key(pattern=FEATURE)]
    level: Annotated[int, Key(ge=1, le=LEVEL_MAX)] | None = None


class RaiseFeature:
    """A feature of the brokers is raised."""

    name: ClassVar = "raise-feature"
    about: ClassVar = "Raises a feature of the brokers while workers run."
    params: ClassVar = RaiseFeatureSpec
    needs: ClassVar = frozenset({"features"})

    def inject(self, context: FaultContext, fault: PlannedFault[RaiseFeatureSpec]) -> Undo:
        """Raise the feature. Raises DeadlineError when the brokers do not report the level within 30 s."""
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
        """Return a message unless the feature was raised from a lower level."""
        target = events.the(FaultTarget, fault=fault.id)
        if events.first(FeatureRaised, fault=fault.id) is None:
            return f"{target.role} was not raised"
        if (target.before or 0) >= (target.level or 0):
            return f"{target.role} was already at level {target.before}"
        return None


FAULT = RaiseFeature()
