"""F3, N5, N6: a worker is stopped, taken for dead, and replaced; then it comes back, and goes on where it was.

    [[faults]]
    name = "replace"
    when = { worker = 0, phase = "before-commit", count = 12 }
    by = 0                           # its own next incarnation; or another worker, which gets its partitions too
    fenced = "epoch"                 # or "never": then its late commit must have been seen to succeed

For pipelines whose partitions are fixed: no group's generation stands in the way, so all hangs on the transactional id.
The zombie goes on when its successor has committed. It ends at the fence, or after its first late commit.
"""

import signal
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field as Key

from faults._fencing import not_fenced
from faults._told import told
from harness.child import Child
from harness.field import Field
from harness.plan import PlannedFault
from harness.protocols import Event, Undo
from harness.scenario import FaultSpec, When

_DEADLINE_S = 60.0


class ReplaceSpec(FaultSpec):
    when: When
    by: Annotated[int, Key(ge=0, le=3)]
    fenced: Literal["epoch", "never"]


class Replace:
    name: ClassVar = "replace"
    about: ClassVar = "a stopped worker is taken for dead and replaced, then it comes back"
    params: ClassVar = ReplaceSpec

    def __init__(self) -> None:
        self._zombies: dict[str, Child] = {}

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        spec = fault.spec
        assert isinstance(spec, ReplaceSpec)
        worker = spec.when.worker
        field.note("fault-target", fault=fault.id, role=f"worker-{worker}", by=f"worker-{spec.by}",
                   incarnation=field.crew.incarnation(worker), successor_after=field.crew.incarnation(spec.by))
        field.crew.pause(worker)
        zombie = self._zombies[fault.id] = field.crew.replace(worker, spec.by)
        zombie.send("go", fault=fault.id)  # the nemesis' own word will go to the successor
        return zombie.kill

    def hold(self, field: Field, fault: PlannedFault) -> None:
        """Until the successor has committed, and the zombie then met its fence or committed too."""
        spec = fault.spec
        assert isinstance(spec, ReplaceSpec)
        target = told("fault-target", fault, field.history.events())
        source, zombie = target["role"], (target["role"], target["incarnation"])
        field.wait(
            f"a commit of the successor, {target['by']}",
            lambda e: e["event"] == "outcome" and e["type"] == "ok" and e["source"] == target["by"]
            and e["incarnation"] > target["successor_after"],
            deadline_s=_DEADLINE_S,
        )  # fmt: skip
        field.note("zombie-late", fault=fault.id, successor=target["by"])
        self._zombies[fault.id].signal(signal.SIGCONT)
        field.wait(
            f"the zombie {source} to meet what it meets",
            lambda e: (e["source"], e.get("incarnation")) == zombie and e["event"] in ("outcome", "exited"),
            deadline_s=_DEADLINE_S, since=len(field.history.events()) - 1,
        )  # fmt: skip

    def missing(self, fault: PlannedFault, events: Sequence[Event]) -> str | None:
        spec = fault.spec
        assert isinstance(spec, ReplaceSpec)
        source = f"worker-{spec.when.worker}"
        target = told("fault-target", fault, events)
        succeeded = [e["at"] for e in events if e["event"] == "zombie-late" and e["fault"] == fault.id]
        if not succeeded:
            return f"no successor of {source} committed"
        mine = [e for e in events if e["source"] == source and e.get("incarnation") == target["incarnation"]]
        if spec.fenced == "epoch":
            return not_fenced("epoch", target, succeeded[0], events)
        late = any(e["event"] == "outcome" and e["type"] == "ok" and e["at"] > succeeded[0] for e in mine)
        return None if late else f"the zombie {source} made no late commit"


FAULT = Replace()
