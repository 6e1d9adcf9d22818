"""F5: links cut, black-holed, stalled, or with their answers lost. A worker's lane, or a node's links.

    [[faults]]
    name = "partition"
    target = "worker-0"          # its lane: every broker, seen from this worker
    mode = "cut"
    when = { worker = 0, phase = "begun", count = 20 }
    lasts_s = 4

    target = "leader:output/0"   # a node: all its links (links = "all"), or those to other nodes (links = "nodes")

A proxied TCP link is not a wire; what each mode does is said in harness/proxies.py.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field as Key

from harness import topology
from harness.draw import Chance
from harness.field import NODE_ROLE, Field
from harness.plan import PlannedFault
from harness.protocols import Event, Undo
from harness.proxies import Mode
from harness.scenario import FaultSpec


class PartitionSpec(FaultSpec):
    target: Annotated[str, Key(pattern=f"^(worker-([0-3]|random)|{NODE_ROLE})$")]
    mode: Mode
    links: Literal["all", "nodes"] = "all"


class Partition:
    name: ClassVar = "partition"
    about: ClassVar = "a worker's lane or a node's links: cut, blackhole, stall or responses-lost"
    params: ClassVar = PartitionSpec

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        spec = fault.spec
        assert isinstance(spec, PartitionSpec)
        if spec.target.startswith("worker-"):
            node = spec.target
            links = topology.lane_links(topology.lane_of_worker(int(spec.target.removeprefix("worker-"))))
        else:
            node = field.node(spec.target)
            links = topology.node_links_of(node) if spec.links == "nodes" else topology.links_of(node)
            # Lane 0 is the observer's and is never touched.
            observer = set(topology.lane_links(topology.OBSERVER_LANE))
            links = [link for link in links if link not in observer]
        field.note("fault-target", fault=fault.id, role=spec.target, node=node, mode=spec.mode, links=links)
        field.cluster.proxies.break_links(links, spec.mode)
        field.note("links-broken", fault=fault.id, broken=len(field.cluster.proxies.broken(links)), of=len(links))
        return lambda: field.cluster.proxies.heal_links(links, spec.mode)

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
        """Toxiproxy itself must have said that every link was broken."""
        told = [e for e in events if e["event"] == "links-broken" and e["fault"] == fault.id]
        if not told or not told[0]["of"] or told[0]["broken"] != told[0]["of"]:
            return f"its links were not broken: {[(e['broken'], e['of']) for e in told]}"
        return None


FAULT = Partition()
