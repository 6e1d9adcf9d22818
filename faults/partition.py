"""Break links: a worker's lane, the links of a node, or the links of a whole shape.

    [[faults]]
    name = "partition"
    target = "worker-0"              # a worker's lane, a node by its number or role, "ring" or "minority"
    mode = "cut"
    links = "all"                    # of a node, default; or "nodes", "brokers", "controllers"
    direction = "both"               # of a node, default; or "out", "in"
    when = { worker = 0, phase = "begun", count = 20 }
    lasts_s = 4

`mode` is one of these:

    cut               refuses new connections and resets open ones
    blackhole         accepts bytes and drops them; connections are closed when the fault is healed
    stall             holds every byte and delivers it when the fault is healed
    responses-lost    delivers requests and drops responses; connections are closed when the fault is healed

With `peer`, only the link from the target to that node is broken. `ring` breaks the links from broker 1 to 2, 2 to 3
and 3 to 1, and `minority` those between broker 1 and controller 1 and all other nodes. Connections are closed at the
heal in some modes because bytes are missing from them: a proxied TCP connection cannot lose single packets.
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
    """The keys of `partition`, in addition to those of `LinksSpec`.

    - `mode`: `cut`, `blackhole`, `stall` or `responses-lost`, as described above.
    """

    mode: Mode


class Partition:
    """Links are broken."""

    name: ClassVar = "partition"
    about: ClassVar = "Breaks a worker's lane or a node's links: cut, blackhole, stall or responses-lost."
    params: ClassVar = PartitionSpec
    needs: ClassVar = frozenset({"links"})

    def inject(self, context: FaultContext, fault: PlannedFault[PartitionSpec]) -> Undo:
        """Break the links; the returned function heals them."""
        spec = fault.spec
        mode = spec.mode
        return strike_links(
            context,
            fault,
            lambda links: context.cluster.proxies.break_links(links, mode, fault=fault.id),
            close=mode != "stall",
        )

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Return keys that break a worker's lane or the links of a node for 3 to 8 seconds.

        None if the period already affects every worker, or a node.
        """
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
                "links": chance.dice.choice(("all", "nodes") if role != "database" else ("all",)),
                "lasts_s": chance.seconds(3, 8),
            }
        )

    def missing(self, fault: PlannedFault[PartitionSpec], events: Events) -> str | None:
        """Return a message unless Toxiproxy reported all links as broken."""
        return not_broken(fault, events)


FAULT = Partition()
