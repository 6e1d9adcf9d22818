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

from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field as Key

from harness.field import Field
from harness.plan import PlannedFault
from harness.protocols import Event, Undo
from harness.scenario import FaultSpec

_LEAST = 3


class RebalancesSpec(FaultSpec):
    every_s: Annotated[float, Key(ge=0.5, le=60)] = 1.5


class Rebalances:
    name: ClassVar = "rebalances"
    about: ClassVar = "workers leave their group and join it again, one after the other"
    params: ClassVar = RebalancesSpec

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        spec, work = fault.spec, field.plan.scenario.workload
        assert isinstance(spec, RebalancesSpec)
        for turn in range(max(_LEAST, int(spec.lasts_s / spec.every_s))):
            worker = turn % work.workers
            field.note("worker-sent-away", fault=fault.id, worker=f"worker-{worker}",
                       incarnation=field.crew.incarnation(worker))  # fmt: skip
            if work.static_member:
                field.crew.kill(worker)
                field.crew.release(worker)
            else:
                field.crew.leave(worker)
            field.aborted.wait(spec.every_s)
        return lambda: None

    def hold(self, field: Field, fault: PlannedFault) -> None:
        """It is over when the last worker was sent away."""

    def missing(self, fault: PlannedFault, events: Sequence[Event]) -> str | None:
        """So many members of the group must have ended when they were sent away."""
        away = {(e["worker"], e["incarnation"]) for e in events
                if e["event"] == "worker-sent-away" and e["fault"] == fault.id}  # fmt: skip
        members, ended = ({(e["source"], e.get("incarnation")) for e in events if e["event"] == event}
                          for event in ("assigned", "exited"))  # fmt: skip
        if len(away & members) < _LEAST or away - ended:
            return f"{len(away & members)} members were sent away, and stayed: {sorted(away - ended)}"
        return None


FAULT = Rebalances()
