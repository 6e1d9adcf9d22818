"""F1: kill -9 of a broker or controller, and start again after `lasts_s`.

    [[faults]]
    name = "kill"
    target = "leader:output/0"
    at_s = 4
    lasts_s = 5

The container's process dies at once; its page cache lives on, so this is a crash of the process and no power failure.
"""

from typing import Annotated, ClassVar

from pydantic import Field as Key

from harness.field import NODE_ROLE, Field
from harness.plan import PlannedFault
from harness.protocols import Undo
from harness.scenario import FaultSpec


class KillSpec(FaultSpec):
    target: Annotated[str, Key(pattern=f"^({NODE_ROLE})$")]


class Kill:
    name: ClassVar = "kill"
    about: ClassVar = "kill -9 of a broker or controller by its role; started again after lasts_s"
    params: ClassVar = KillSpec

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        assert isinstance(fault.spec, KillSpec)
        node = field.node(fault.spec.target)
        field.note("fault-target", fault=fault.id, role=fault.spec.target, node=node)
        field.cluster.kill(node)
        return lambda: field.cluster.start(node)


FAULT = Kill()
