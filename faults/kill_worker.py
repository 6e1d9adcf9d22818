"""F4: kill -9 of a worker, at a phase of its transaction or at a time; its next incarnation starts after `lasts_s`.

    [[faults]]
    name = "kill-worker"
    target = "worker-0"
    when = { worker = 0, phase = "offsets-sent", count = 20 }
    lasts_s = 1

With `for_good` it has no next incarnation. With `after_s` it stays at its phase so long before it dies: what goes on
beside its loop, such as auto-commit, goes on. What it leaves depends on the phase: nothing (polled), an open
transaction that the next incarnation's InitProducerId aborts (begun to before-commit), or a transaction that is
committed although nobody saw it (after-commit).
"""

import signal
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field as Key

from faults._told import told
from harness.draw import Chance
from harness.field import Field
from harness.plan import PlannedFault
from harness.protocols import Event, Undo
from harness.scenario import FaultSpec


class KillWorkerSpec(FaultSpec):
    target: Annotated[str, Key(pattern=r"^worker-([0-3]|random)$")]
    after_s: Annotated[float, Key(ge=0, le=30)] = 0.0
    for_good: bool = False


class KillWorker:
    name: ClassVar = "kill-worker"
    about: ClassVar = "kill -9 of a worker, at a phase or at a time; a new incarnation after lasts_s"
    params: ClassVar = KillWorkerSpec

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        assert isinstance(fault.spec, KillWorkerSpec)
        worker = int(fault.spec.target.removeprefix("worker-"))
        field.note("fault-target", fault=fault.id, role=fault.spec.target, incarnation=field.crew.incarnation(worker))
        field.aborted.wait(fault.spec.after_s)
        field.crew.kill(worker)
        return (lambda: None) if fault.spec.for_good else (lambda: field.crew.release(worker))

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        worker = chance.worker()
        return None if worker is None else {"target": f"worker-{worker}", "lasts_s": chance.seconds(0.5, 2.5)}

    def missing(self, fault: PlannedFault, events: Sequence[Event]) -> str | None:
        """The process must have ended by SIGKILL, and not before."""
        target = told("fault-target", fault, events)
        ends = [
            e["code"] for e in events
            if e["event"] == "exited" and e["source"] == target["role"] and e["incarnation"] == target["incarnation"]
            and e["at"] > target["at"]
        ]  # fmt: skip
        return None if ends == [-signal.SIGKILL] else f"{target['role']} was not killed: it ended with {ends}"


FAULT = KillWorker()
