"""F1: a clean stop (SIGTERM), and start again: of one node, or of every broker in turn (a rolling restart).

    [[faults]]
    name = "stop"
    target = "group-coordinator"     # or "every-broker", one after the other, each back in sync before the next
    at_s = 4
    lasts_s = 3

A broker that is stopped cleanly hands over its leaderships and its coordinators' partitions first.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field as Key

from faults._node import NodeSpec, not_in_state, states_after, strike, strike_node
from harness import topology
from harness.field import NODE_ROLE, Field
from harness.plan import PlannedFault
from harness.protocols import Event, Undo
from harness.quiesce import not_in_sync
from harness.wait import until

_BACK_DEADLINE_S = 60.0
_KILLED = 137


class StopSpec(NodeSpec):
    target: Annotated[str, Key(pattern=f"^(every-broker|{NODE_ROLE})$")]


class Stop:
    name: ClassVar = "stop"
    about: ClassVar = "a clean stop of a node, or of every broker in turn; started again after lasts_s"
    params: ClassVar = StopSpec

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        assert isinstance(fault.spec, StopSpec)
        if fault.spec.target != "every-broker":
            node = strike(field, fault, field.cluster.stop)
            return lambda: field.cluster.start(node)
        brokers = [topology.node_of(number) for number in topology.BROKERS]
        for node in brokers:
            strike_node(field, fault, node, field.cluster.stop)
            field.aborted.wait(fault.spec.lasts_s)
            field.cluster.start(node)
            until(f"{node} back in sync", lambda: not not_in_sync(field), deadline_s=_BACK_DEADLINE_S)
        return lambda: None

    def missing(self, fault: PlannedFault, events: Sequence[Event]) -> str | None:
        assert isinstance(fault.spec, StopSpec)
        times = len(topology.BROKERS) if fault.spec.target == "every-broker" else 1
        if any(e.get("exit_code") == _KILLED for e in states_after(fault, events)):
            return "the node did not end in time, and was killed"
        return not_in_state("exited", fault, events, times=times)


FAULT = Stop()
