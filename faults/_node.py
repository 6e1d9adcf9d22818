"""Keys and behaviour that the faults on one node share: the node's role, and the evidence that it was hit.

The evidence is the state of the node's container, as the container engine reports it after the fault was injected. A
fault that had no effect is thereby recognised, and the run is then vacuous.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any

from pydantic import Field as Key

from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import DeadlineError
from onceproof.harness.context.context import FaultContext
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.model.targets import BROKER_ROLE, NODE_ROLE
from onceproof.harness.record.events import FaultTarget, NodeState
from onceproof.harness.record.history import Events

_HIT_DEADLINE_S = 5.0
_END_DEADLINE_S = 30.0


class NodeSpec(FaultSpec):
    """The key of every fault that is aimed at one node.

    - `target`: the node by its number or role, resolved when the fault starts: `broker-1` to `broker-3`, `controller-1`
      to `controller-3`, `broker-random` and `controller-random` (chosen by the plan), `leader:TOPIC/PARTITION`,
      `follower-1:TOPIC/PARTITION` and `follower-2:…`, `transaction-coordinator:worker-N`, `group-coordinator`,
      `controller-leader`, or `database`, which is PostgreSQL in a container of the cluster.
    """

    target: Annotated[str, Key(pattern=f"^({NODE_ROLE})$")]


def strike(context: FaultContext, fault: PlannedFault[NodeSpec], act: Callable[[str], None]) -> str:
    """Apply `act` to the node that has the target's role now, record its state, and return its name.

    Raises DeadlineError when no node has the role for twenty seconds.
    """
    node = context.node(fault.spec.target)
    strike_node(context, fault, node, act)
    return node


def strike_node(context: FaultContext, fault: PlannedFault[NodeSpec], node: str, act: Callable[[str], None]) -> None:
    """Apply `act` to the named node, and record its state before and after.

    The state after is read as soon as the node is no longer running, at the latest after five seconds.
    """
    context.note(FaultTarget(fault=fault.id, role=fault.spec.target, node=node))
    before = context.cluster.state(node)
    act(node)
    with suppress(DeadlineError):  # the state that is recorded below then shows that the fault had no effect
        until(f"{node} not to be running", lambda: context.cluster.state(node) != "running", deadline_s=_HIT_DEADLINE_S)
    context.note(
        NodeState(
            fault=fault.id,
            node=node,
            before=before,
            state=context.cluster.state(node),
            exit_code=context.cluster.exit_code(node),
        )
    )


class BrokerSpec(NodeSpec):
    """The key of faults after which a broker ends by itself.

    - `target`: a broker by its number or role, as for `kill`.
    """

    target: Annotated[str, Key(pattern=f"^({BROKER_ROLE})$")]


def make_end(context: FaultContext, fault: PlannedFault[BrokerSpec], act: Callable[[str], None]) -> str:
    """Apply `act` to the broker that has the target's role now, wait until it has ended, and return its name.

    Raises DeadlineError when no broker has the role for twenty seconds, or it still runs after thirty.
    """
    node, cluster = context.node(fault.spec.target), context.cluster
    context.note(FaultTarget(fault=fault.id, role=fault.spec.target, node=node))
    before = cluster.state(node)
    act(node)
    until(f"{node} to shut down", lambda: cluster.state(node) == "exited", deadline_s=_END_DEADLINE_S)
    state, code = cluster.state(node), cluster.exit_code(node)
    context.note(NodeState(fault=fault.id, node=node, before=before, state=state, exit_code=code))
    return node


def not_ended(fault: PlannedFault[BrokerSpec], events: Events) -> str | None:
    """Return a message unless the broker ended by itself, with an error."""
    if any(each.exit_code == 0 for each in events.of(NodeState, fault=fault.id)):
        return "the broker ended without an error"
    return not_in_state("exited", fault, events)


def draw_node(chance: Chance, matches: Callable[[str], bool] = lambda _: True) -> Mapping[str, Any] | None:
    """Return the keys of a random fault on a node whose role matches, for 3 to 8 seconds, or None.

    None means that another fault of the same period already affects a node.
    """
    role = chance.node(matches)
    return None if role is None else {"target": role, "lasts_s": chance.seconds(3, 8)}


def draw_broker(chance: Chance) -> Mapping[str, Any] | None:
    """Return keys as `draw_node` does, for a broker."""
    return draw_node(chance, lambda role: re.fullmatch(BROKER_ROLE, role) is not None)


def not_in_state(wanted: str, fault: PlannedFault[NodeSpec], events: Events, *, times: int = 1) -> str | None:
    """Return a message unless the node was running before and in the state `wanted` after the fault, `times` times.

    Returns None when it was.
    """
    seen = events.of(NodeState, fault=fault.id)
    if before := [each.before for each in seen if each.before != "running"]:
        return f"the node was not running before the fault: {before}"
    states = [each.state for each in seen]
    return None if states == [wanted] * times else f"the node was not {wanted} after the fault: {states}"
