"""F1: a clean stop (SIGTERM), and start again: of one node, or of every broker in turn (a rolling restart).

    [[faults]]
    name = "stop"
    target = "group-coordinator"     # or "every-broker", one after the other, each back in sync before the next
    at_s = 4
    lasts_s = 3

A broker that is stopped cleanly hands over its leaderships and its coordinators' partitions first.
"""

from typing import Annotated, ClassVar

from pydantic import Field as Key

from onceproof.faults._node import NodeSpec, not_in_state, strike, strike_node
from onceproof.harness.base.deadlines import until
from onceproof.harness.cluster import topology
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.context.settled import not_in_sync
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.targets import NODE_ROLE
from onceproof.harness.record.events import NodeState
from onceproof.harness.record.history import Events

_BACK_DEADLINE_S = 60.0
_KILLED = 137


class StopSpec(NodeSpec):
    target: Annotated[str, Key(pattern=f"^(every-broker|{NODE_ROLE})$")]


class Stop:
    name: ClassVar = "stop"
    about: ClassVar = "a clean stop of a node, or of every broker in turn; started again after lasts_s"
    params: ClassVar = StopSpec
    needs: ClassVar = frozenset({"nodes"})

    def inject(self, context: FaultContext, fault: PlannedFault[StopSpec]) -> Undo:
        if fault.spec.target != "every-broker":
            node = strike(context, fault, context.cluster.stop)
            return lambda: context.cluster.start(node)
        brokers = [topology.node_of(number) for number in topology.BROKERS]
        for node in brokers:
            strike_node(context, fault, node, context.cluster.stop)
            context.aborted.wait(fault.spec.lasts_s)
            context.cluster.start(node)
            until(f"{node} back in sync", lambda: not not_in_sync(context), deadline_s=_BACK_DEADLINE_S)
        return lambda: None

    def missing(self, fault: PlannedFault[StopSpec], events: Events) -> str | None:
        times = len(topology.BROKERS) if fault.spec.target == "every-broker" else 1
        if any(each.exit_code == _KILLED for each in events.of(NodeState, fault=fault.id)):
            return "the node did not end in time, and was killed"
        return not_in_state("exited", fault, events, times=times)


FAULT = Stop()
