"""Stop a node cleanly with SIGTERM and start it again, or do so with every broker in turn (a rolling restart).

    [[faults]]
    name = "stop"
    target = "group-coordinator"     # a node by its number or role, or "every-broker"
    at_s = 4
    lasts_s = 3                      # how long each node is down

A broker that is stopped cleanly first hands over the leadership of its partitions, and with it its coordinators' roles.
With `every-broker`, the next broker is stopped only when all replicas are in sync again.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field as Key

from onceproof.faults._node import NodeSpec, draw_node, not_in_state, strike, strike_node
from onceproof.harness.base.deadlines import until
from onceproof.harness.cluster import topology
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.context.settled import not_in_sync
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.model.targets import NODE_ROLE
from onceproof.harness.record.events import NodeState
from onceproof.harness.record.history import Events

_BACK_DEADLINE_S = 60.0
_KILLED = 137  # the exit code of a container ended by SIGKILL


class StopSpec(NodeSpec):
    """The key of `stop`.

    - `target`: a node by its number or role, as for `kill`, or `every-broker` for each broker in turn.
    """

    target: Annotated[str, Key(pattern=f"^(every-broker|{NODE_ROLE})$")]


class Stop:
    """A node is stopped cleanly and started again."""

    name: ClassVar = "stop"
    about: ClassVar = "Stops a node cleanly, or every broker in turn, and starts it again after lasts_s."
    params: ClassVar = StopSpec
    needs: ClassVar = frozenset({"nodes"})

    def inject(self, context: FaultContext, fault: PlannedFault[StopSpec]) -> Undo:
        """Stop the node; the returned function starts it again.

        With `every-broker`, every broker has been restarted when this returns. Raises DeadlineError when replicas are
        not in sync again within 60 s after a restart.
        """
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

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Return keys that stop a node for 3 to 8 seconds, or None if the period already affects a node."""
        return draw_node(chance)

    def missing(self, fault: PlannedFault[StopSpec], events: Events) -> str | None:
        """Return a message unless each node ended by itself after SIGTERM."""
        times = len(topology.BROKERS) if fault.spec.target == "every-broker" else 1
        if any(each.exit_code == _KILLED for each in events.of(NodeState, fault=fault.id)):
            return "the node did not stop in time and was killed"
        return not_in_state("exited", fault, events, times=times)


FAULT = Stop()
