"""Leave a partition with one live replica that is behind, so that only an unclean election could give it a leader.

    [[faults]]
    name = "unclean-election"
    target = "follower-1:output/0"
    at_s = 4
    lasts_s = 5

The follower is killed. When it is out of the ISR, the load goes on for two seconds, and it is behind. Then the other
two brokers are killed, and the follower is started. It lacks committed records, so it must not become the leader: the
partition has none for `lasts_s`. Then the other brokers are started, and one of them leads. With `allowed`, the
follower becomes the leader, and the records that it lacks are lost.

Since KIP-966 a replica that is no longer in the ISR may still be eligible; one that was behind is not.
"""

import time
from typing import Annotated, ClassVar

from pydantic import Field as Key

from onceproof.harness.base.deadlines import until
from onceproof.harness.cluster.described import PartitionState
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.record.events import FaultTarget, OutOfSync
from onceproof.harness.record.history import Events

_DEADLINE_S = 60.0
_BEHIND_S = 2.0


class UncleanElectionSpec(FaultSpec):
    """The keys of `unclean-election`.

    - `target`: the broker that is behind: `follower-1:TOPIC/PARTITION` or `follower-2:…`.
    - `allowed`: whether the topic allows an unclean election (its `unclean.leader.election.enable`).
    """

    target: Annotated[str, Key(pattern=r"^follower-[12]:[a-z][a-z-]{0,79}/\d{1,4}$")]

    allowed: bool = False

    @property
    def place(self) -> tuple[str, int]:
        """The topic, by the workload's own name of it, and the partition."""
        topic, partition = self.target.partition(":")[2].split("/")
        return topic, int(partition)


class UncleanElection:
    """A partition has one live replica, which is behind."""

    name: ClassVar = "unclean-election"
    about: ClassVar = "Leaves a partition with one live replica, which is behind, so that it must have no leader."
    params: ClassVar = UncleanElectionSpec
    needs: ClassVar = frozenset({"nodes"})

    def inject(self, context: FaultContext, fault: PlannedFault[UncleanElectionSpec]) -> Undo:
        """Kill the brokers in order and start the one that is behind; the returned function starts the others.

        Raises DeadlineError when the ISR does not shrink, or the broker does not come back, within 60 s.
        """
        cluster, (role, partition) = context.cluster, fault.spec.place
        topic, node = context.names.topic(role), context.node(fault.spec.target)

        def state() -> PartitionState:
            return cluster.admin.partitions(topic)[partition]

        until("all replicas to be in sync", lambda: len(state().isr) == len(state().replicas), deadline_s=_DEADLINE_S)
        behind = int(node.removeprefix("broker"))
        others = [each for each in state().replicas if each != behind]
        if fault.spec.allowed:
            cluster.admin.set_topic_config(topic, "unclean.leader.election.enable", "true")
        context.note(FaultTarget(fault=fault.id, role=fault.spec.target, node=node))
        cluster.kill(node)
        until(f"{node} to be out of the ISR", lambda: behind not in state().isr, deadline_s=_DEADLINE_S)
        time.sleep(_BEHIND_S)
        isr = state().isr
        for each in others:
            cluster.kill(f"broker{each}")
        cluster.start(node)
        until(f"{node} to be the only one", lambda: cluster.admin.brokers() == [behind], deadline_s=_DEADLINE_S)

        def note(step: str) -> None:
            leader = state().leader
            context.note(OutOfSync(fault=fault.id, step=step, broker=behind, isr=list(isr), leader=leader))

        note("alone")

        def undo() -> None:
            note("before-the-others")
            for each in others:
                cluster.start(f"broker{each}")

        return undo

    def missing(self, fault: PlannedFault[UncleanElectionSpec], events: Events) -> str | None:
        """Return a message unless a replica that was not in the ISR was the only one that was alive."""
        steps = events.of(OutOfSync, fault=fault.id)
        if len(steps) < 2:
            return "the partition was never left with one live replica"
        if any(each.broker in each.isr for each in steps):
            return "the live replica was in sync"
        return None


FAULT = UncleanElection()
