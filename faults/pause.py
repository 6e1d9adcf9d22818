"""F2: a broker or controller is frozen, its connections open, and goes on after `lasts_s` as if nothing had been.

    [[faults]]
    name = "pause"
    target = "transaction-coordinator:worker-0"
    when = { worker = 0, phase = "before-commit", count = 20 }
    lasts_s = 6

Paused past its session with the controllers it comes back as a zombie broker, and must find that others lead now.
"""

from typing import Annotated, ClassVar

from pydantic import Field as Key

from harness.field import NODE_ROLE, Field
from harness.plan import PlannedFault
from harness.protocols import Undo
from harness.scenario import FaultSpec


class PauseSpec(FaultSpec):
    target: Annotated[str, Key(pattern=f"^({NODE_ROLE})$")]


class Pause:
    name: ClassVar = "pause"
    about: ClassVar = "a broker or controller is frozen and thawed after lasts_s"
    params: ClassVar = PauseSpec

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        assert isinstance(fault.spec, PauseSpec)
        node = field.node(fault.spec.target)
        field.note("fault-target", fault=fault.id, role=fault.spec.target, node=node)
        field.cluster.pause(node)
        return lambda: field.cluster.resume(node)


FAULT = Pause()
