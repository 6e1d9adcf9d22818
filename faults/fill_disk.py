"""Fill the disk of a broker, and make room again after `lasts_s`.

    [cluster]
    disk_mb = 300                    # each broker has a file system of this size

    [[faults]]
    name = "fill-disk"
    target = "leader:output/0"
    at_s = 4
    lasts_s = 4

A file takes all space that is left on the broker's file system. Its next write to the log fails with "No space left on
device"; since that is its only log directory, it shuts down (KIP-112). When the fault ends, the file is removed and the
broker is started.
"""

from typing import Annotated, ClassVar

from pydantic import Field as Key

from onceproof.faults._node import NodeSpec, not_in_state
from onceproof.harness.base.deadlines import until
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.targets import BROKER_ROLE
from onceproof.harness.record.events import FaultTarget, NodeState, Noted
from onceproof.harness.record.history import Events

_DEADLINE_S = 30.0


class FillDiskSpec(NodeSpec):
    """The key of `fill-disk`.

    - `target`: a broker by its number or role, as for `kill`.
    """

    target: Annotated[str, Key(pattern=f"^({BROKER_ROLE})$")]


class FillDisk:
    """A broker has no space left on its disk until the fault ends."""

    name: ClassVar = "fill-disk"
    about: ClassVar = "Fills a broker's disk, so that it shuts down, and makes room after lasts_s."
    params: ClassVar = FillDiskSpec
    needs: ClassVar = frozenset({"nodes", "log-access"})
    small_disk: ClassVar = True

    def inject(self, context: FaultContext, fault: PlannedFault[FillDiskSpec]) -> Undo:
        """Fill the disk and wait until the broker has ended; the returned function undoes both.

        Raises DeadlineError when no node has the role for 20 s, or the broker still runs after 30 s.
        """
        cluster, node = context.cluster, context.node(fault.spec.target)
        context.note(FaultTarget(fault=fault.id, role=fault.spec.target, node=node))
        before = cluster.state(node)
        taken = cluster.fill_disk(node)
        context.note(Noted(fault=fault.id, what="filled", data={"bytes": taken}))
        until(f"{node} to shut down", lambda: cluster.state(node) == "exited", deadline_s=_DEADLINE_S)
        state, code = cluster.state(node), cluster.exit_code(node)
        context.note(NodeState(fault=fault.id, node=node, before=before, state=state, exit_code=code))

        def undo() -> None:
            cluster.make_room()
            cluster.start(node)

        return undo

    def missing(self, fault: PlannedFault[FillDiskSpec], events: Events) -> str | None:
        """Return a message unless the broker ended by itself."""
        if any(each.exit_code == 0 for each in events.of(NodeState, fault=fault.id)):
            return "the broker ended without an error"
        return not_in_state("exited", fault, events)


FAULT = FillDisk()
