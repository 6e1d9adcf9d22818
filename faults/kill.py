"""F1: kill -9 of a broker or controller, and start again after `lasts_s`.

    [[faults]]
    name = "kill"
    target = "leader:output/0"
    at_s = 4
    lasts_s = 5

The container's process dies at once; its page cache lives on, so this is a crash of the process and no power failure.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from onceproof.faults._node import NodeSpec, draw_node, not_in_state, strike
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.record.history import Events


class Kill:
    name: ClassVar = "kill"
    about: ClassVar = "kill -9 of a broker or controller by its role; started again after lasts_s"
    params: ClassVar = NodeSpec
    needs: ClassVar = frozenset({"nodes"})

    def inject(self, context: FaultContext, fault: PlannedFault[NodeSpec]) -> Undo:
        node = strike(context, fault, context.cluster.kill)
        return lambda: context.cluster.start(node)

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        return draw_node(chance)

    def missing(self, fault: PlannedFault[NodeSpec], events: Events) -> str | None:
        return not_in_state("exited", fault, events)


FAULT = Kill()
