"""Restart every node in turn with another release, up or down, on its own data and under load.

    [[faults]]
    name = "upgrade"
    to = "4.3.1"                     # the Kafka release
    at_s = 3

Controllers are restarted first, then brokers, each one when all replicas are in sync again. Features are not raised:
`raise-feature` does that, and until then a downgrade is possible (KIP-584). The cluster is not reused for another run.
"""

from itertools import pairwise
from typing import Annotated, ClassVar

from pydantic import Field as Key

from onceproof.harness.artifacts import images
from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import DeadlineError
from onceproof.harness.cluster import topology
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.context.settled import not_in_sync
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.record.events import FaultTarget, NodeReplaced
from onceproof.harness.record.history import Events

_BACK_DEADLINE_S = 90.0
# Controllers first, then brokers.
_ORDER = sorted(topology.NODES, key=lambda node: not topology.is_controller(node))


class UpgradeSpec(FaultSpec):
    """The key of `upgrade`.

    - `to`: the Kafka release with which every node is started, 3.x or 4.x, such as `4.3.1`.
    """

    to: Annotated[str, Key(pattern=r"^[34]\.[0-9]{1,3}\.[0-9]{1,3}$")]


class Upgrade:
    """Every node is restarted with another release."""

    name: ClassVar = "upgrade"
    about: ClassVar = "Restarts each node in turn with another release: a rolling upgrade or downgrade."
    params: ClassVar = UpgradeSpec
    needs: ClassVar = frozenset({"nodes"})

    def prepare(self, spec: UpgradeSpec) -> None:
        """Build the release's image if it is not there."""
        images.kafka(spec.to)

    def inject(self, context: FaultContext, fault: PlannedFault[UpgradeSpec]) -> Undo:
        """Restart the first node; the others follow in `hold`."""
        context.note(FaultTarget(fault=fault.id, role="every node", node=f"to {fault.spec.to}"))
        _restart(_ORDER[0], context, fault)
        return lambda: None

    def hold(self, context: FaultContext, fault: PlannedFault[UpgradeSpec], _undo: Undo) -> None:
        """Restart the other nodes, each one when all replicas are in sync after the restart of the one before.

        Raises DeadlineError when replicas are not in sync again within 90 s, or the run is given up before the last
        node.
        """
        for before, node in pairwise(_ORDER):
            _in_sync(before, context)
            if context.aborted.is_set():
                raise DeadlineError(f"the run ended before {node} was upgraded")
            _restart(node, context, fault)
        _in_sync(_ORDER[-1], context)

    def missing(self, fault: PlannedFault[UpgradeSpec], events: Events) -> str | None:
        """Return a message unless the container engine reported the release's image for every node."""
        image = f":{fault.spec.to}-"
        replaced = events.of(NodeReplaced, fault=fault.id)
        done = {each.node for each in replaced if image in each.image and image not in each.before}
        left = [node for node in topology.NODES if node not in done]
        return f"nodes that were not restarted with {fault.spec.to}: {', '.join(left)}" if left else None


def _restart(node: str, context: FaultContext, fault: PlannedFault[UpgradeSpec]) -> None:
    before = context.cluster.image(node)
    context.cluster.replace(node, fault.spec.to)
    context.note(NodeReplaced(fault=fault.id, node=node, before=before, image=context.cluster.image(node)))


def _in_sync(after: str, context: FaultContext) -> None:
    until(f"all replicas in sync after {after}", lambda: not not_in_sync(context), deadline_s=_BACK_DEADLINE_S)


FAULT = Upgrade()
