"""What faults that hit one node share: the role it is chosen by, and the proof that it was hit.

The proof is read back from the engine after the act: a fault that did nothing must not pass for one that did.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any

from pydantic import Field as Key

from harness.draw import Chance
from harness.errors import DeadlineError
from harness.field import NODE_ROLE, Field
from harness.plan import PlannedFault
from harness.protocols import Event
from harness.scenario import FaultSpec
from harness.wait import until

_HIT_DEADLINE_S = 5.0


class NodeSpec(FaultSpec):
    target: Annotated[str, Key(pattern=f"^({NODE_ROLE})$")]


def strike(field: Field, fault: PlannedFault, act: Callable[[str], None]) -> str:
    """Do `act` to the node that has the role now; write down which it is and in what state it is then; return it."""
    assert isinstance(fault.spec, NodeSpec)
    node = field.node(fault.spec.target)
    strike_node(field, fault, node, act)
    return node


def strike_node(field: Field, fault: PlannedFault, node: str, act: Callable[[str], None]) -> None:
    """`strike` of a node that is known by its name."""
    assert isinstance(fault.spec, NodeSpec)
    field.note("fault-target", fault=fault.id, role=fault.spec.target, node=node)
    before = field.cluster.state(node)
    act(node)
    with suppress(DeadlineError):  # then it is what it is, and is written down as such
        until(f"{node} to be hit", lambda: field.cluster.state(node) != "running", deadline_s=_HIT_DEADLINE_S)
    field.note("node-state", fault=fault.id, node=node, before=before, state=field.cluster.state(node),
               exit_code=field.cluster.exit_code(node))  # fmt: skip


def draw_node(chance: Chance) -> Mapping[str, Any] | None:
    """A node for some seconds, when no other fault of the period takes one away."""
    role = chance.node()
    return None if role is None else {"target": role, "lasts_s": chance.seconds(3, 8)}


def states_after(fault: PlannedFault, events: Sequence[Event]) -> list[Event]:
    """What the engine showed of the node after each act."""
    return [e for e in events if e["event"] == "node-state" and e["fault"] == fault.id]


def not_in_state(wanted: str, fault: PlannedFault, events: Sequence[Event], *, times: int = 1) -> str | None:
    """What to say when the engine did not show the node in that state after the act, so many times."""
    told = states_after(fault, events)
    if states := [e["before"] for e in told if e.get("before", "running") != "running"]:
        return f"the node was not running when it was hit: {states}"
    states = [e["state"] for e in told]
    return None if states == [wanted] * times else f"the node was not {wanted} when it should have been: {states}"
