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
from typing import Annotated, ClassVar, Literal

from pydantic import Field as Key

from onceproof.faults._fencing import not_fenced
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.process import Child
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.spec import FaultSpec, When
from onceproof.harness.record.events import Exited, FaultTarget, Outcome, ZombieLate
from onceproof.harness.record.history import Events

_DEADLINE_S = 60.0


class ReplaceSpec(FaultSpec):
    when: When
    by: Annotated[int, Key(ge=0, le=3)]
    fenced: Literal["epoch", "never"]


class Replaced:
    """The process that was replaced; called, it ends it."""

    def __init__(self, process: Child) -> None:
        self.process = process

    def __call__(self) -> None:
        self.process.kill()


class Replace:
    """A stopped worker is replaced by another process and then goes on."""

    name: ClassVar = "replace"
    about: ClassVar = "a stopped worker is taken for dead and replaced, then it comes back"
    params: ClassVar = ReplaceSpec

    def inject(self, context: FaultContext, fault: PlannedFault[ReplaceSpec]) -> Replaced:
        """Stop the worker and start its successor."""
        spec = fault.spec
        worker = spec.when.worker
        context.note(
            FaultTarget(
                fault=fault.id,
                role=f"worker-{worker}",
                by=f"worker-{spec.by}",
                incarnation=context.workers.incarnation(worker),
                successor_after=context.workers.incarnation(spec.by),
            )
        )
        context.workers.pause(worker)
        zombie = context.workers.replace(worker, spec.by)
        zombie.send("go", fault=fault.id)  # the nemesis sends its own `go` to the successor
        return Replaced(zombie)

    def hold(self, context: FaultContext, fault: PlannedFault[ReplaceSpec], undo: Replaced) -> None:
        """Until the successor has committed, and the zombie was then fenced or has committed too."""
        target = context.history.events().the(FaultTarget, fault=fault.id)
        context.wait(
            f"a commit of the successor, {target.by}",
            Outcome,
            lambda event: (
                event.type == "ok"
                and event.source == target.by
                and event.incarnation > (target.successor_after or 0)
            ),
            deadline_s=_DEADLINE_S,
        )
        since = len(context.history)
        context.note(ZombieLate(fault=fault.id, successor=str(target.by)))
        undo.process.signal(signal.SIGCONT)
        context.wait(
            f"an outcome or the end of the zombie {target.role}",
            (Outcome, Exited),
            lambda event: event.process == (target.role, target.incarnation),
            deadline_s=_DEADLINE_S,
            since=since,
        )

    def missing(self, fault: PlannedFault[ReplaceSpec], events: Events) -> str | None:
        """The zombie must have been fenced by epoch, or must have made a late commit."""
        source = f"worker-{fault.spec.when.worker}"
        target = events.the(FaultTarget, fault=fault.id)
        late = events.first(ZombieLate, fault=fault.id)
        if late is None:
            return f"no successor of {source} committed"
        if fault.spec.fenced == "epoch":
            return not_fenced("epoch", target, late.at, events)
        commits = events.of(Outcome, type="ok", process=(source, target.incarnation))
        return None if any(each.at > late.at for each in commits) else f"the zombie {source} made no late commit"


FAULT = Replace()
