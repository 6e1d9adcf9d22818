"""Kill a worker with SIGKILL, at a phase of its transaction or at a time.

    [[faults]]
    name = "kill-worker"
    target = "worker-0"              # or "worker-random"
    when = { worker = 0, phase = "offsets-sent", count = 20 }
    after_s = 0                      # default; how long the worker stays at the phase before it is killed
    for_good = false                 # default; true: no new incarnation is started
    lasts_s = 1                      # time until the next incarnation is started

What the worker leaves behind depends on the phase: nothing (`polled`), an open transaction that the InitProducerId of
its next incarnation aborts (`begun` to `before-commit`), or a committed transaction (`after-commit`). During `after_s`,
background work of the client such as auto-commit continues. An application may take long to start. So a fault on its
instance has healed when the next incarnation has committed a transaction, and the load goes on until then.
"""

import signal
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field as Key

from onceproof.harness.base.errors import DeadlineError
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.record.events import Exited, FaultMissed, FaultTarget, Outcome
from onceproof.harness.record.history import Events

_AGAIN_DEADLINE_S = 30.0


class KillWorkerSpec(FaultSpec):
    """The keys of `kill-worker`.

    - `target`: the worker, `worker-0` to `worker-3`, or `worker-random`.
    - `after_s`: time in seconds from the moment of the fault to SIGKILL, 0 by default, 30 at most.
    - `for_good`: whether the worker stays away for the rest of the run, false by default.
    """

    target: Annotated[str, Key(pattern=r"^worker-([0-3]|random)$")]
    after_s: Annotated[float, Key(ge=0, le=30)] = 0.0
    for_good: bool = False


class KillWorker:
    """A worker is killed."""

    name: ClassVar = "kill-worker"
    about: ClassVar = "Kills a worker with SIGKILL, at a phase or at a time; its next incarnation starts after lasts_s."
    params: ClassVar = KillWorkerSpec

    def inject(self, context: FaultContext, fault: PlannedFault[KillWorkerSpec]) -> Undo:
        """Kill the worker; the returned function starts its next incarnation unless it is `for_good`.

        That function waits until an instance of an application has committed a transaction, for 30 s at most.
        """
        worker = int(fault.spec.target.removeprefix("worker-"))
        killed = context.workers.incarnation(worker)
        context.note(FaultTarget(fault=fault.id, role=fault.spec.target, incarnation=killed))
        context.aborted.wait(fault.spec.after_s)
        context.workers.kill(worker)
        if fault.spec.for_good:
            return lambda: None

        def undo() -> None:
            context.workers.release(worker)
            if context.plan.scenario.app is None:
                return
            try:
                context.wait(
                    f"{fault.spec.target} to commit again",
                    Outcome,
                    lambda event: _again(event, fault.spec.target, killed),
                    deadline_s=_AGAIN_DEADLINE_S,
                )
            except DeadlineError as error:
                context.note(FaultMissed(fault=fault.id, reason=str(error)))

        return undo

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Return keys that kill a worker for 0.5 to 2.5 seconds, or None if every worker is already hit."""
        worker = chance.worker()
        return None if worker is None else {"target": f"worker-{worker}", "lasts_s": chance.seconds(0.5, 2.5)}

    def missing(self, fault: PlannedFault[KillWorkerSpec], events: Events) -> str | None:
        """Return a message unless the worker's process was ended by SIGKILL after the fault began."""
        target = events.the(FaultTarget, fault=fault.id)
        exits = events.of(Exited, process=(target.role, target.incarnation))
        ends = [each.code for each in exits if each.at > target.at]
        return None if ends == [-signal.SIGKILL] else f"{target.role} was not ended by SIGKILL; exit codes: {ends}"


def _again(event: Outcome, role: str, killed: int | None) -> bool:
    """Return whether a worker committed a transaction after this incarnation of it."""
    return event.source == role and event.type == "ok" and (event.incarnation or 0) > (killed or 0)


FAULT = KillWorker()
