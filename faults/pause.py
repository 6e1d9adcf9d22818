"""F2: a broker or controller is frozen, its connections open, and goes on after `lasts_s` as if nothing had been.

    [[faults]]
    name = "pause"
    target = "transaction-coordinator:worker-0"
    when = { worker = 0, phase = "before-commit", count = 20 }
    lasts_s = 6

Paused past its session with the controllers it comes back as a zombie broker, and must find that others lead now.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from faults._node import NodeSpec, draw_node, not_in_state, strike
from harness.draw import Chance
from harness.field import Field
from harness.plan import PlannedFault
from harness.protocols import Event, Undo


class Pause:
    name: ClassVar = "pause"
    about: ClassVar = "a broker or controller is frozen and thawed after lasts_s"
    params: ClassVar = NodeSpec

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        node = strike(field, fault, field.cluster.pause)
        return lambda: field.cluster.resume(node)

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        return draw_node(chance)

    def missing(self, fault: PlannedFault, events: Sequence[Event]) -> str | None:
        return not_in_state("paused", fault, events)


FAULT = Pause()
