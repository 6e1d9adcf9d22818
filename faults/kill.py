"""Kill a broker or a controller with SIGKILL, and start it again after `lasts_s`.

    [[faults]]
    name = "kill"
    target = "leader:output/0"       # a node by its number or role
    at_s = 4
    lasts_s = 5

The process ends at once, but the page cache of its machine survives. So this shows a crash of the process and not a
power failure.
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
    """A node is killed and started again."""

    name: ClassVar = "kill"
    about: ClassVar = "Kills a broker or controller with SIGKILL, and starts it again after lasts_s."
    params: ClassVar = NodeSpec
    needs: ClassVar = frozenset({"nodes"})

    def inject(self, context: FaultContext, fault: PlannedFault[NodeSpec]) -> Undo:
        """Kill the node; the returned function starts it again."""
        node = strike(context, fault, context.cluster.kill)
        return lambda: context.cluster.start(node)

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Return keys that kill a node for 3 to 8 seconds, or None if the period already affects a node."""
        return draw_node(chance)

    def missing(self, fault: PlannedFault[NodeSpec], events: Events) -> str | None:
        """Return a message unless the container engine reported the node as exited."""
        return not_in_state("exited", fault, events)


FAULT = Kill()
