"""F5: links cut, black-holed, stalled, or with their answers lost. A worker's lane, a node's links, or a whole shape.

    [[faults]]
    name = "partition"
    target = "worker-0"              # its lane; other targets: faults/_links.py
    mode = "cut"
    when = { worker = 0, phase = "begun", count = 20 }
    lasts_s = 4

A proxied TCP link is not a wire; what each mode does is said in harness/proxies.py.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from onceproof.faults._links import LinksSpec, not_broken, strike_links
from onceproof.harness.cluster.links import Mode
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.record.history import Events


class PartitionSpec(LinksSpec):
    mode: Mode


class Partition:
    name: ClassVar = "partition"
    about: ClassVar = "a worker's lane or a node's links: cut, blackhole, stall or responses-lost"
    params: ClassVar = PartitionSpec
    needs: ClassVar = frozenset({"links"})

    def inject(self, context: FaultContext, fault: PlannedFault[PartitionSpec]) -> Undo:
        spec = fault.spec
        mode = spec.mode
        return strike_links(
            context, fault, lambda links: context.cluster.proxies.break_links(links, mode), close=mode != "stall"
        )

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """A worker's lane, or the links among nodes of one."""
        mode = chance.dice.choice(("cut", "blackhole", "stall"))
        worker = chance.worker() if chance.dice.random() < 0.5 else None
        if worker is not None:
            return {"target": f"worker-{worker}", "mode": mode, "lasts_s": chance.seconds(3, 8)}
        role = chance.node()
        return (
            None
            if role is None
            else {
                "target": role,
                "mode": mode,
                "links": chance.dice.choice(("all", "nodes")),
                "lasts_s": chance.seconds(3, 8),
            }
        )

    def missing(self, fault: PlannedFault[PartitionSpec], events: Events) -> str | None:
        return not_broken(fault, events)


FAULT = Partition()
