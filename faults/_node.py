"""What faults that hit one node share: the role it is chosen by, and the proof that it was hit.

The proof is read back from the engine after the act: a fault that did nothing must not pass for one that did.
"""

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
from onceproof.harness.model.targets import NODE_ROLE
from onceproof.harness.record.events import FaultTarget, NodeState
from onceproof.harness.record.history import Events

_HIT_DEADLINE_S = 5.0


class NodeSpec(FaultSpec):
    target: Annotated[str, Key(pattern=f"^({NODE_ROLE})$")]


def strike(context: FaultContext, fault: PlannedFault[NodeSpec], act: Callable[[str], None]) -> str:
    """Do `act` to the node that has the role now; write down which it is and in what state it is then; return it."""
    node = context.node(fault.spec.target)
    strike_node(context, fault, node, act)
    return node


def strike_node(context: FaultContext, fault: PlannedFault[NodeSpec], node: str, act: Callable[[str], None]) -> None:
    """`strike` of a node that is known by its name."""
    context.note(FaultTarget(fault=fault.id, role=fault.spec.target, node=node))
    before = context.cluster.state(node)
    act(node)
    with suppress(DeadlineError):  # then it is what it is, and is written down as such
        until(f"{node} to be hit", lambda: context.cluster.state(node) != "running", deadline_s=_HIT_DEADLINE_S)
    context.note(
        NodeState(
            fault=fault.id,
            node=node,
            before=before,
            state=context.cluster.state(node),
            exit_code=context.cluster.exit_code(node),
        )
    )


def draw_node(chance: Chance) -> Mapping[str, Any] | None:
    """A node for some seconds, when no other fault of the period takes one away."""
    role = chance.node()
    return None if role is None else {"target": role, "lasts_s": chance.seconds(3, 8)}


def not_in_state(wanted: str, fault: PlannedFault[NodeSpec], events: Events, *, times: int = 1) -> str | None:
    """What to say when the engine did not show the node in that state after the act, so many times."""
    seen = events.of(NodeState, fault=fault.id)
    if before := [each.before for each in seen if each.before != "running"]:
        return f"the node was not running when it was hit: {before}"
    states = [each.state for each in seen]
    return None if states == [wanted] * times else f"the node was not {wanted} when it should have been: {states}"
