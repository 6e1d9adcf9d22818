"""A worker's own code fails at a phase: it aborts its transaction, seeks back, and reads the same inputs again.

    [[faults]]
    name = "abort"
    when = { worker = 0, phase = "offsets-sent", count = 12 }
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

from faults._told import told
from harness import history
from harness.field import Field
from harness.plan import PlannedFault
from harness.protocols import Event, Undo
from harness.scenario import FaultSpec, When


class AbortWhen(When):
    phase: Literal["polled", "begun", "produced", "offsets-sent", "before-commit"]


class AbortSpec(FaultSpec):
    when: AbortWhen
    lasts_s: float = 0.5


class Abort:
    name: ClassVar = "abort"
    about: ClassVar = "a worker gives its transaction up at a phase, as when its own code fails"
    params: ClassVar = AbortSpec

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        assert isinstance(fault.spec, AbortSpec)
        worker = fault.spec.when.worker
        field.note("fault-target", fault=fault.id, role=f"worker-{worker}", incarnation=field.crew.incarnation(worker))
        field.crew.go(worker, fault.id, abort=True)
        return lambda: None

    def missing(self, fault: PlannedFault, events: Sequence[Event]) -> str | None:
        target = told("fault-target", fault, events)
        if any(error["call"] == "process" for error in history.met(target, target["at"], events)):
            return None
        return f"{target['role']} did not give its transaction up"


FAULT = Abort()
