"""Freeze a broker or a controller while its connections stay open, and let it continue after `lasts_s`.

    [[faults]]
    name = "pause"
    target = "transaction-coordinator:worker-0"      # a node by its number or role
    when = { worker = 0, phase = "before-commit", count = 20 }
    lasts_s = 6

A broker that is frozen for longer than its session with the controllers is fenced by them. When it continues, it is a
zombie broker and must discover that others lead its partitions now.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from onceproof.faults._node import NodeSpec, draw_node, not_in_state, strike
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.record.history import Events


class Pause:
    """A node is frozen and continues later."""

    name: ClassVar = "pause"
    about: ClassVar = "Freezes a broker or controller, and lets it continue after lasts_s."
    params: ClassVar = NodeSpec
    needs: ClassVar = frozenset({"nodes"})

    def inject(self, context: FaultContext, fault: PlannedFault[NodeSpec]) -> Undo:
        """Freeze the node; the returned function lets it continue."""
        node = strike(context, fault, context.cluster.pause)
        return lambda: context.cluster.resume(node)

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Return keys that freeze a node for 3 to 8 seconds, or None if the period already affects a node."""
        return draw_node(chance)

    def missing(self, fault: PlannedFault[NodeSpec], events: Events) -> str | None:
        """Return a message unless the container engine reported the node as paused."""
        return not_in_state("paused", fault, events)


FAULT = Pause()
