"""A worker's own code fails at a phase: it aborts its transaction, seeks back, and reads the same inputs again.

[[faults]]
name = "abort"
when = { worker = 0, phase = "offsets-sent", count = 12 }
"""

from typing import ClassVar, Literal

from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.spec import FaultSpec, When
from onceproof.harness.record.events import FaultTarget
from onceproof.harness.record.history import Events


class AbortWhen(When):
    phase: Literal["polled", "begun", "produced", "offsets-sent", "before-commit"]


class AbortSpec(FaultSpec):
    when: AbortWhen
    lasts_s: float = 0.5


class Abort:
    name: ClassVar = "abort"
    about: ClassVar = "a worker gives its transaction up at a phase, as when its own code fails"
    params: ClassVar = AbortSpec

    def inject(self, context: FaultContext, fault: PlannedFault[AbortSpec]) -> Undo:
        worker = fault.spec.when.worker
        context.note(
            FaultTarget(fault=fault.id, role=f"worker-{worker}", incarnation=context.workers.incarnation(worker))
        )
        context.workers.go(worker, fault.id, abort=True)
        return lambda: None

    def missing(self, fault: PlannedFault[AbortSpec], events: Events) -> str | None:
        target = events.the(FaultTarget, fault=fault.id)
        if any(error.call == "process" for error in events.errors_met(target, target.at)):
            return None
        return f"{target.role} did not give its transaction up"


FAULT = Abort()
