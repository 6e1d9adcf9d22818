"""Reassign the replicas of a topic under load, and let the new preferred leaders take over (KIP-455, KIP-460).

    [[faults]]
    name = "reassign"
    topic = "output"                 # or "input", "__transaction_state", "__consumer_offsets"
    at_s = 4
    lasts_s = 4

Every partition first loses the replica that was its preferred leader, so that most leaders move at once. When the fault
ends, that replica is added again as the last one: the broker has deleted its copy, so it fetches the whole partition
while the workers go on. Then the preferred leaders are elected. With `__transaction_state` or `__consumer_offsets`, the
coordinators of transactional ids or groups move with their partitions.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from onceproof.harness.base.deadlines import until
from onceproof.harness.cluster.admin import Admin
from onceproof.harness.cluster.described import PartitionState
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.model.workload import Workload
from onceproof.harness.record.events import FaultTarget, Reassigned
from onceproof.harness.record.history import Events

_INTERNAL = ("__transaction_state", "__consumer_offsets")
_DEADLINE_S = 60.0
States = dict[int, PartitionState]  # by partition number


class ReassignSpec(FaultSpec):
    """The key of `reassign`.

    - `topic`: the topic, by the workload's own name of it, `__transaction_state` or `__consumer_offsets`.
    """

    topic: str

    def topics(self, workload: Workload) -> Sequence[str]:
        """Return the topics whose replicas can be reassigned."""
        return ("input", *workload.topics, *_INTERNAL)


class Reassign:
    """The replicas of a topic are reassigned, away from their leaders and back."""

    name: ClassVar = "reassign"
    about: ClassVar = "Moves the replicas of a topic away from their leaders and back, and elects preferred leaders."
    params: ClassVar = ReassignSpec

    def inject(self, context: FaultContext, fault: PlannedFault[ReassignSpec]) -> Undo:
        """Take one replica from each partition; the returned function adds it again and elects the preferred leaders.

        Both raise DeadlineError when the brokers have not done so within 60 s.
        """
        role = fault.spec.topic
        topic = role if role in _INTERNAL else context.names.topic(role)
        admin = context.cluster.admin
        before = admin.partitions(topic)
        context.note(FaultTarget(fault=fault.id, role=role, node=topic, partitions=sorted(before)))
        taken = _reassign(admin, topic, {number: state.replicas[1:] for number, state in before.items()})

        def note(step: str, now: States) -> None:
            moved = sum(now[number].leader != state.leader for number, state in before.items())
            replicas = min(len(state.replicas) for state in now.values())
            context.note(Reassigned(fault=fault.id, step=step, replicas=replicas, leaders_moved=moved))

        note("taken", taken)

        def undo() -> None:
            wanted = {number: (*state.replicas[1:], state.replicas[0]) for number, state in before.items()}
            _reassign(admin, topic, wanted)
            admin.elect_preferred(topic)

            def preferred(number: int, state: PartitionState) -> bool:
                return state.replicas == wanted[number] and state.leader == wanted[number][0]

            whole = partial(_if_all, admin, topic, preferred)
            note("added", until(f"the preferred leaders of {topic}", whole, deadline_s=_DEADLINE_S))

        return undo

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Return keys that reassign a topic for 3 to 6 seconds, or None if the period already affects a node.

        No later fault of the period will affect one, since all replicas must get in sync.
        """
        if chance.node() is None:
            return None
        topic = chance.dice.choice(("input", *chance.topics, *_INTERNAL))
        return {"topic": topic, "lasts_s": chance.seconds(3, 6)}

    def missing(self, fault: PlannedFault[ReassignSpec], events: Events) -> str | None:
        """Return a message unless replicas were taken and added again, and leaders moved."""
        steps = {each.step: each for each in events.of(Reassigned, fault=fault.id)}
        if set(steps) != {"taken", "added"}:
            return f"the replicas were not reassigned: {', '.join(steps) or 'no step was completed'}"
        if steps["taken"].replicas >= steps["added"].replicas:
            return "no partition had a replica less while it lasted"
        return None if steps["taken"].leaders_moved else "no leader moved"


def _if_all(admin: Admin, topic: str, wanted: Callable[[int, PartitionState], bool]) -> States:
    """Return the states of the partitions if all are as wanted, and nothing otherwise.

    What is noted of them is read from the same answer, since another broker may not yet know of the change.
    """
    states = admin.partitions(topic)
    return states if all(wanted(number, state) for number, state in states.items()) else {}


def _reassign(admin: Admin, topic: str, wanted: Mapping[int, tuple[int, ...]]) -> States:
    """Reassign the partitions, and wait until all of the wanted replicas are in sync and no other is left."""

    def done(number: int, state: PartitionState) -> bool:
        return state.replicas == wanted[number] and state.isr == tuple(sorted(wanted[number]))

    until(f"{topic} to accept its reassignment", partial(_begun, admin, topic, wanted), deadline_s=_DEADLINE_S)
    whole = partial(_if_all, admin, topic, done)
    return until(f"the replicas of {topic} to be reassigned", whole, deadline_s=_DEADLINE_S)


def _begun(admin: Admin, topic: str, wanted: Mapping[int, tuple[int, ...]]) -> bool:
    admin.reassign(topic, wanted)
    return True


FAULT = Reassign()
