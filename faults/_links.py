"""Keys and behaviour that all link faults share: the affected links, and the evidence that they were broken.

    target = "worker-0"          # its lane: the links from this worker to all brokers
    target = "worker-0"          # with peer = "leader:output/0": only the link from this worker to that node
    target = "worker-0"          # with peer = "database": only the link from this worker to PostgreSQL
    target = "leader:output/0"   # the links of a node; `links` and `direction` select some of them
    target = "leader:output/0"   # with peer = "broker-1": only the link from this node to that one
    target = "ring"              # the links broker 1 to 2, 2 to 3 and 3 to 1: each broker still reaches one other
    target = "minority"          # the links between broker 1 and controller 1 and all other nodes

The evidence is read back from Toxiproxy after the links were broken.
"""

import re
from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field as Key
from pydantic import model_validator

from onceproof.harness.base.errors import HarnessError
from onceproof.harness.cluster import topology
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.model.targets import NODE_ROLE
from onceproof.harness.record.events import FaultTarget, LinksBroken, ToxiproxyRestarted
from onceproof.harness.record.history import Events

_NO_NODE = re.compile("worker-|ring$|minority$|database$")


class LinksSpec(FaultSpec):
    """The keys of every fault that is aimed at links.

    - `target`: `worker-0` to `worker-3` or `worker-random` for a worker's lane, which is its links to all brokers; the
      number or role of a node (`broker-1`, `controller-random`, `leader:output/0`, `transaction-coordinator:worker-0`,
      `group-coordinator`, `controller-leader`) for the links of that node; `database` for the links of all workers to
      PostgreSQL in a container of the cluster; or one of the shapes `ring` and `minority`.
    - `links`: which links of a node: `all` (default; clients included), those to all other `nodes`, those to `brokers`,
      or those to `controllers`. Only for a target that is a node, without `peer`.
    - `direction`: `both` (default), `out` for what the node sends, or `in` for what it receives. Only for a target that
      is a node, without `peer`.
    - `peer`: the number or role of a second node, or, for a target that is a worker, `database`. Only the link from the
      target to this node is affected. Only for a target that is a worker or a node.
    """

    target: Annotated[str, Key(pattern=f"^(worker-([0-3]|random)|ring|minority|{NODE_ROLE})$")]
    links: Literal["all", "nodes", "brokers", "controllers"] = "all"
    direction: Literal["both", "out", "in"] = "both"
    peer: Annotated[str, Key(pattern=f"^({NODE_ROLE})$")] | None = None

    @model_validator(mode="after")
    def _keys_fit_together(self) -> "LinksSpec":
        if self.peer and (self.target in ("ring", "minority", "database") or self.peer.endswith("-random")):
            raise ValueError("peer: must be a node's number or role, and target must be a worker or a node")
        if self.peer == "database" and not self.target.startswith("worker-"):
            raise ValueError("peer: database: only of a target that is a worker, since no node connects to it")
        if (self.peer or _NO_NODE.match(self.target)) and (self.links, self.direction) != ("all", "both"):
            raise ValueError("links and direction: only of a target that is a node, and not together with peer")
        return self


def strike_links(
    context: FaultContext, fault: PlannedFault[LinksSpec], act: Callable[[list[str]], None], *, close: bool
) -> Undo:
    """Apply `act` to the links that the fault is aimed at, and return the function that heals them.

    The history records which links these are, and how many of them Toxiproxy reports as broken before and after. With
    `close`, healing also closes the connections that are open on the links.
    """
    spec = fault.spec
    node, links = meant(context, spec)
    context.note(FaultTarget(fault=fault.id, role=spec.target, node=node, links=links))
    already = len(context.cluster.proxies.broken(links))

    def undo() -> None:
        if not context.cluster.heal_links(links, fault=fault.id, close=close):
            context.note(ToxiproxyRestarted(fault=fault.id))

    try:
        act(links)
    except HarnessError:  # some of them may be broken
        undo()
        raise
    broken = len(context.cluster.proxies.broken(links))
    context.note(LinksBroken(fault=fault.id, already=already, broken=broken, of=len(links)))
    return undo


def not_broken(fault: PlannedFault[LinksSpec], events: Events) -> str | None:
    """Return a message if Toxiproxy did not report all links as newly broken, and None if it did."""
    seen = events.first(LinksBroken, fault=fault.id)
    if seen is None or not seen.of or seen.broken != seen.of:
        return f"the links were not broken: {f'{seen.broken} of {seen.of} were' if seen else 'nothing was recorded'}"
    return "another fault had already broken the same links" if seen.already == seen.of else None


def meant(context: FaultContext, spec: LinksSpec) -> tuple[str, list[str]]:
    """Return the name of what is hit, and the links that the fault is aimed at.

    Roles are resolved now. Raises DeadlineError when no node has the role for twenty seconds.
    """
    if spec.target.startswith("worker-"):
        lane = topology.lane_of_worker(int(spec.target.removeprefix("worker-")))
        if spec.peer is not None:
            node = context.node(spec.peer)
            of_lane = topology.links_of(f"lane{lane}")
            return f"{spec.target} and {node}", [link for link in of_lane if link.endswith(f">{node}")]
        return spec.target, topology.lane_links(lane)
    if spec.target == "ring":
        names = [topology.node_of(number) for number in topology.BROKERS]
        return spec.target, [topology.link(*pair) for pair in zip(names, [*names[1:], names[0]], strict=True)]
    if spec.target == "minority":
        minority = {"broker1", "controller1"}
        return spec.target, topology.links_between(minority, set(topology.NODES) - minority)
    node = context.node(spec.target)
    if spec.peer is not None:
        return node, [topology.link(node, context.node(spec.peer))]
    if spec.links == "all":
        # Lane 0 belongs to the observer and is never broken.
        observer = set(topology.links_of(f"lane{topology.OBSERVER_LANE}"))
        links = [link for link in topology.links_of(node) if link not in observer]
    else:
        others = {name for name in topology.NODES if spec.links == "nodes" or name.startswith(spec.links[:-1])} - {node}
        links = topology.links_between({node}, others)
    ends = {"both": "", "out": f"{node}->", "in": f"->{node}"}[spec.direction]
    return node, [link for link in links if ends in link]
