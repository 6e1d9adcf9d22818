"""F5: links cut, black-holed, stalled, or with their answers lost. A worker's lane, a node's links, or a whole shape.

    [[faults]]
    name = "partition"
    target = "worker-0"              # its lane; other targets: faults/_links.py
    mode = "cut"
    when = { worker = 0, phase = "begun", count = 20 }
    lasts_s = 4

A proxied TCP link is not a wire; what each mode does is said in harness/proxies.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from faults._links import LinksSpec, not_broken, strike_links
from harness.draw import Chance
from harness.field import Field
from harness.plan import PlannedFault
from harness.protocols import Event, Undo
from harness.proxies import Mode


class PartitionSpec(LinksSpec):
    mode: Mode


class Partition:
    name: ClassVar = "partition"
    about: ClassVar = "a worker's lane or a node's links: cut, blackhole, stall or responses-lost"
    params: ClassVar = PartitionSpec

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        spec = fault.spec
        assert isinstance(spec, PartitionSpec)
        mode = spec.mode
        return strike_links(
            field, fault, lambda links: field.cluster.proxies.break_links(links, mode), close=mode != "stall"
        )

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """A worker's lane, or the links among nodes of one."""
        mode = chance.dice.choice(("cut", "blackhole", "stall"))
        worker = chance.worker() if chance.dice.random() < 0.5 else None
        if worker is not None:
            return {"target": f"worker-{worker}", "mode": mode, "lasts_s": chance.seconds(3, 8)}
        role = chance.node()
        return None if role is None else {
            "target": role, "mode": mode, "links": chance.dice.choice(("all", "nodes")), "lasts_s": chance.seconds(3, 8)
        }  # fmt: skip

    def missing(self, fault: PlannedFault, events: Sequence[Event]) -> str | None:
        return not_broken(fault, events)


FAULT = Partition()
