"""Cause a series of rebalances: workers leave their group one after the other and join it again.

    [[faults]]
    name = "rebalances"
    at_s = 3
    lasts_s = 8
    every_s = 1.5                    # default: time between two workers that leave

Each worker in turn ends after its current transaction, which leaves the group, and its next incarnation joins the
group. `lasts_s` divided by `every_s` workers leave, but at least three. A static member (`static_member` of the
workload, KIP-345) keeps its partitions while it is away. It is killed instead, since a worker that closes its consumer
in order would give up its membership.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, ClassVar

from pydantic import Field as Key

from onceproof.harness.base.errors import DeadlineError
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.record.events import Assigned, Exited, WorkerSentAway
from onceproof.harness.record.history import Events

_LEAVES_MIN = 3
_ASSIGNED_S = 20.0


class RebalancesSpec(FaultSpec):
    """The keys of `rebalances`.

    - `every_s`: time in seconds between two workers that leave, 0.5 to 60, 1.5 by default.
    - `lasts_s`: time in seconds during which workers leave; at least three leave, however short it is.
    """

    every_s: Annotated[float, Key(ge=0.5, le=60)] = 1.5


class Rebalances:
    """Workers leave their group and join it again."""

    name: ClassVar = "rebalances"
    about: ClassVar = "Makes workers leave their group and join it again, one after the other."
    params: ClassVar = RebalancesSpec

    def inject(self, context: FaultContext, fault: PlannedFault[RebalancesSpec]) -> Undo:
        """Let the workers leave, one every `every_s`; returns after the last one."""
        spec, work = fault.spec, context.plan.scenario.workload
        for turn in range(max(_LEAVES_MIN, int(spec.lasts_s / spec.every_s))):
            worker = turn % work.workers
            if context.plan.scenario.app is not None:
                _await_assigned(context, worker)
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
        """Return at once, since `inject` returns only after the last worker has left."""

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Return keys that let workers leave for 4 to 7 seconds, after which no fault of the period hits a worker.

        None if one does already, if no group assigns the partitions, and for a chain, whose second service reports no
        assignments.
        """
        if chance.hit_workers or not chance.grouped or chance.workload.intermediate_topic:
            return None
        chance.workers.clear()
        return {"lasts_s": chance.seconds(4, 7)}

    def missing(self, fault: PlannedFault[RebalancesSpec], events: Events) -> str | None:
        """Return a message unless at least three members of the group were asked to leave and all of them ended."""
        away = {(each.role, each.incarnation) for each in events.of(WorkerSentAway, fault=fault.id)}
        members = {each.process for each in events.of(Assigned)}
        ended = {each.process for each in events.of(Exited)}
        if len(away & members) < _LEAVES_MIN or away - ended:
            return f"{len(away & members)} members were asked to leave; still running: {sorted(away - ended)}"
        return None


def _await_assigned(context: FaultContext, worker: int) -> None:
    """Wait until an instance of an application has partitions, for 20 seconds at most.

    It may have to wait until the session of its last incarnation has ended, if that did not leave its group.
    """
    incarnation = f"worker-{worker}", context.workers.incarnation(worker)
    with suppress(DeadlineError):
        context.wait("an assignment", Assigned, lambda each: each.process == incarnation, deadline_s=_ASSIGNED_S)


FAULT = Rebalances()
