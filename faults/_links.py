"""What faults on links share: which links are meant, and the proof that they were hit.

target = "worker-0"          # its lane: every broker, or (peer = "leader:output/0") that one, seen from this worker
target = "leader:output/0"   # a node: all its links (links = "all"), those to other nodes ("nodes"), to brokers
                             # ("brokers") or to controllers ("controllers"); direction = "out" or "in": one way;
                             # or (peer = "leader:output/0") the one that leads from it to that node
target = "ring"              # broker 1 does not reach 2, nor 2 3, nor 3 1: each still reaches one
target = "minority"          # broker 1 and controller 1 against the majority of both
"""

import re
from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field as Key
from pydantic import model_validator

from onceproof.harness.cluster import topology
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.model.targets import NODE_ROLE
from onceproof.harness.record.events import FaultTarget, LinksBroken, ToxiproxyRestarted
from onceproof.harness.record.history import Events

_NOT_A_NODE = re.compile("worker-|ring$|minority$")


class LinksSpec(FaultSpec):
    target: Annotated[str, Key(pattern=f"^(worker-([0-3]|random)|ring|minority|{NODE_ROLE})$")]
    links: Literal["all", "nodes", "brokers", "controllers"] = "all"
    direction: Literal["both", "out", "in"] = "both"
    peer: Annotated[str, Key(pattern=f"^({NODE_ROLE})$")] | None = None

    @model_validator(mode="after")
    def _means_what_it_says(self) -> "LinksSpec":
        if self.peer and (self.target in ("ring", "minority") or self.peer.endswith("-random")):
            raise ValueError("peer: a node by its number or role, of a target that is a worker or a node")
        if (self.peer or _NOT_A_NODE.match(self.target)) and (self.links, self.direction) != ("all", "both"):
            raise ValueError("links and direction: only of a target that is a node, without a peer")
        return self


def strike_links(
    context: FaultContext, fault: PlannedFault[LinksSpec], act: Callable[[list[str]], None], *, close: bool
) -> Undo:
    """Do `act` to the links that are meant now, and write down which, and what Toxiproxy then says of them; return what
    takes it back, closing what is open on them if `close`."""
    spec = fault.spec
    node, links = meant(context, spec)
    context.note(FaultTarget(fault=fault.id, role=spec.target, node=node, links=links))
    already = len(context.cluster.proxies.broken(links))
    act(links)
    broken = len(context.cluster.proxies.broken(links))
    context.note(LinksBroken(fault=fault.id, already=already, broken=broken, of=len(links)))

    def undo() -> None:
        if not context.cluster.heal_links(links, close=close):
            context.note(ToxiproxyRestarted(fault=fault.id))

    return undo


def not_broken(fault: PlannedFault[LinksSpec], events: Events) -> str | None:
    """What to say when Toxiproxy itself did not say that every link was broken."""
    seen = events.first(LinksBroken, fault=fault.id)
    if seen is None or not seen.of or seen.broken != seen.of:
        return f"its links were not broken: {f'{seen.broken} of {seen.of}' if seen else 'nothing was noted'}"
    return "another fault had broken its links already" if seen.already == seen.of else None


def meant(context: FaultContext, spec: LinksSpec) -> tuple[str, list[str]]:
    """What is hit, and its links."""
    if spec.target.startswith("worker-"):
        lane = topology.lane_of_worker(int(spec.target.removeprefix("worker-")))
        links = topology.lane_links(lane)
        if spec.peer is not None:
            node = context.node(spec.peer)
            return f"{spec.target} and {node}", [link for link in links if link.endswith(f">{node}")]
        return spec.target, links
    if spec.target == "ring":
        names = [topology.node_of(number) for number in topology.BROKERS]
        return spec.target, [topology.link(*pair) for pair in zip(names, [*names[1:], names[0]], strict=True)]
    if spec.target == "minority":
        few = {"broker1", "controller1"}
        return spec.target, topology.links_between(few, set(topology.NODES) - few)
    node = context.node(spec.target)
    if spec.peer is not None:
        return node, [topology.link(node, context.node(spec.peer))]
    if spec.links == "all":
        # Lane 0 is the observer's and is never touched.
        observer = set(topology.lane_links(topology.OBSERVER_LANE))
        links = [link for link in topology.links_of(node) if link not in observer]
    else:
        others = {name for name in topology.NODES if spec.links == "nodes" or name.startswith(spec.links[:-1])} - {node}
        links = topology.links_between({node}, others)
    ends = {"both": "", "out": f"{node}->", "in": f"->{node}"}[spec.direction]
    return node, [link for link in links if ends in link]
