"""F1: kill -9 of a broker or controller, and start again after `lasts_s`.

    [[faults]]
    name = "kill"
    target = "leader:output/0"
    at_s = 4
    lasts_s = 5

The container's process dies at once; its page cache lives on, so this is a crash of the process and no power failure.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from faults._node import NodeSpec, draw_node, not_in_state, strike
from harness.draw import Chance
from harness.field import Field
from harness.plan import PlannedFault
from harness.protocols import Event, Undo


class Kill:
    name: ClassVar = "kill"
    about: ClassVar = "kill -9 of a broker or controller by its role; started again after lasts_s"
    params: ClassVar = NodeSpec

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        node = strike(field, fault, field.cluster.kill)
        return lambda: field.cluster.start(node)

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        return draw_node(chance)

    def missing(self, fault: PlannedFault, events: Sequence[Event]) -> str | None:
        return not_in_state("exited", fault, events)


FAULT = Kill()
