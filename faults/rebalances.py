"""F12: a storm of rebalances: workers leave the group and join it again, one after the other, while it lasts.

    [[faults]]
    name = "rebalances"
    at_s = 3
    lasts_s = 8
    every_s = 1.5

Each worker in turn ends after its transaction, which leaves the group, and its next incarnation joins. A static member
(`static_member` of the workload) keeps its partitions while it is away, so a storm of those moves nothing; it is killed
instead, since who leaves in an orderly way gives up its place.
"""

from typing import Annotated, ClassVar

from pydantic import Field as Key

from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.record.events import Assigned, Exited, WorkerSentAway
from onceproof.harness.record.history import Events

_LEAST = 3


class RebalancesSpec(FaultSpec):
    every_s: Annotated[float, Key(ge=0.5, le=60)] = 1.5


class Rebalances:
    name: ClassVar = "rebalances"
    about: ClassVar = "workers leave their group and join it again, one after the other"
    params: ClassVar = RebalancesSpec

    def inject(self, context: FaultContext, fault: PlannedFault[RebalancesSpec]) -> Undo:
        spec, work = fault.spec, context.plan.scenario.workload
        for turn in range(max(_LEAST, int(spec.lasts_s / spec.every_s))):
            worker = turn % work.workers
            context.note(
                WorkerSentAway(
                    fault=fault.id,
                    role=f"worker-{worker}",
                    incarnation=context.workers.incarnation(worker),
                )
            )
            if work.static_member:
                context.workers.kill(worker)
                context.workers.release(worker)
            else:
                context.workers.leave(worker)
            context.aborted.wait(spec.every_s)
        return lambda: None

    def hold(self, context: FaultContext, fault: PlannedFault[RebalancesSpec], _undo: Undo) -> None:
        """It is over when the last worker was sent away."""

    def missing(self, fault: PlannedFault[RebalancesSpec], events: Events) -> str | None:
        """So many members of the group must have ended when they were sent away."""
        away = {(each.role, each.incarnation) for each in events.of(WorkerSentAway, fault=fault.id)}
        members = {each.process for each in events.of(Assigned)}
        ended = {each.process for each in events.of(Exited)}
        if len(away & members) < _LEAST or away - ended:
            return f"{len(away & members)} members were sent away, and stayed: {sorted(away - ended)}"
        return None


FAULT = Rebalances()
