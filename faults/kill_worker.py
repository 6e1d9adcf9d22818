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
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field as Key

from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.record.events import Exited, FaultTarget
from onceproof.harness.record.history import Events


class KillWorkerSpec(FaultSpec):
    target: Annotated[str, Key(pattern=r"^worker-([0-3]|random)$")]
    after_s: Annotated[float, Key(ge=0, le=30)] = 0.0
    for_good: bool = False


class KillWorker:
    name: ClassVar = "kill-worker"
    about: ClassVar = "kill -9 of a worker, at a phase or at a time; a new incarnation after lasts_s"
    params: ClassVar = KillWorkerSpec

    def inject(self, context: FaultContext, fault: PlannedFault[KillWorkerSpec]) -> Undo:
        worker = int(fault.spec.target.removeprefix("worker-"))
        context.note(
            FaultTarget(fault=fault.id, role=fault.spec.target, incarnation=context.workers.incarnation(worker))
        )
        context.aborted.wait(fault.spec.after_s)
        context.workers.kill(worker)
        return (lambda: None) if fault.spec.for_good else (lambda: context.workers.release(worker))

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        worker = chance.worker()
        return None if worker is None else {"target": f"worker-{worker}", "lasts_s": chance.seconds(0.5, 2.5)}

    def missing(self, fault: PlannedFault[KillWorkerSpec], events: Events) -> str | None:
        """The process must have ended by SIGKILL, and not before."""
        target = events.the(FaultTarget, fault=fault.id)
        exits = events.of(Exited, process=(target.role, target.incarnation))
        ends = [each.code for each in exits if each.at > target.at]
        return None if ends == [-signal.SIGKILL] else f"{target.role} was not killed: it ended with {ends}"


FAULT = KillWorker()
