"""F2: a broker or controller is frozen, its connections open, and goes on after `lasts_s` as if nothing had been.

    [[faults]]
    name = "pause"
    target = "transaction-coordinator:worker-0"
    when = { worker = 0, phase = "before-commit", count = 20 }
    lasts_s = 6

Paused past its session with the controllers it comes back as a zombie broker, and must find that others lead now.
"""

from typing import ClassVar

from harness.field import Field, NodeSpec
from harness.plan import PlannedFault
from harness.protocols import Undo


class Pause:
    name: ClassVar = "pause"
    about: ClassVar = "a broker or controller is frozen and thawed after lasts_s"
    params: ClassVar = NodeSpec

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        node = field.target_node(fault)
        field.cluster.pause(node)
        return lambda: field.cluster.resume(node)


FAULT = Pause()
