"""F15: every node in turn is stopped and started with another release, up or down, on its own data, under load.

    [[faults]]
    name = "upgrade"
    to = "4.3.1"
    at_s = 3

Controllers first, then brokers; the next only when all replicas are in sync again. Features are not raised by it: that
is `raise-feature`, and until then the way back is open (KIP-584). The cluster is not used again.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field as Key

from harness import images, topology
from harness.errors import DeadlineError
from harness.field import Field
from harness.plan import PlannedFault
from harness.protocols import Event, Undo
from harness.quiesce import not_in_sync
from harness.scenario import FaultSpec
from harness.wait import until

_BACK_DEADLINE_S = 90.0


class UpgradeSpec(FaultSpec):
    to: Annotated[str, Key(pattern=r"^[34]\.\d+\.\d+$")]


class Upgrade:
    name: ClassVar = "upgrade"
    about: ClassVar = "a rolling upgrade or downgrade: each node in turn is started with another release"
    params: ClassVar = UpgradeSpec

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        assert isinstance(fault.spec, UpgradeSpec)
        images.kafka(fault.spec.to)
        field.note("fault-target", fault=fault.id, role="every node", node=f"to {fault.spec.to}")
        return lambda: None

    def hold(self, field: Field, fault: PlannedFault) -> None:
        assert isinstance(fault.spec, UpgradeSpec)
        controllers = [node for node in topology.NODES if topology.is_controller(node)]
        for node in [*controllers, *(node for node in topology.NODES if node not in controllers)]:
            if field.aborted.is_set():
                raise DeadlineError(f"the run ended before {node} was upgraded")
            before = field.cluster.image(node)
            field.cluster.replace(node, fault.spec.to)
            until(f"all replicas in sync after {node}", lambda: not not_in_sync(field), deadline_s=_BACK_DEADLINE_S)
            field.note("node-replaced", fault=fault.id, node=node, before=before, image=field.cluster.image(node))

    def missing(self, fault: PlannedFault, events: Sequence[Event]) -> str | None:
        """The engine must have said of every node that it runs the other release's image, and did not before."""
        assert isinstance(fault.spec, UpgradeSpec)
        image = f":{fault.spec.to}-"
        done = {e["node"] for e in events if e["event"] == "node-replaced" and e["fault"] == fault.id
                and image in e["image"] and image not in e.get("before", "")}  # fmt: skip
        left = [node for node in topology.NODES if node not in done]
        return f"not started with {fault.spec.to}: {', '.join(left)}" if left else None


FAULT = Upgrade()
