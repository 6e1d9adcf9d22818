"""F2: a broker or controller is frozen, its connections open, and goes on after `lasts_s` as if nothing had been.

    [[faults]]
    name = "pause"
    target = "transaction-coordinator:worker-0"
    when = { worker = 0, phase = "before-commit", count = 20 }
    lasts_s = 6

Paused past its session with the controllers it comes back as a zombie broker, and must find that others lead now.
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
    name: ClassVar = "pause"
    about: ClassVar = "a broker or controller is frozen and thawed after lasts_s"
    params: ClassVar = NodeSpec
    needs: ClassVar = frozenset({"nodes"})

    def inject(self, context: FaultContext, fault: PlannedFault[NodeSpec]) -> Undo:
        node = strike(context, fault, context.cluster.pause)
        return lambda: context.cluster.resume(node)

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        return draw_node(chance)

    def missing(self, fault: PlannedFault[NodeSpec], events: Events) -> str | None:
        return not_in_state("paused", fault, events)


FAULT = Pause()
