"""Stop a worker, start a process in its place, and then let the stopped worker continue where it was.

    [[faults]]
    name = "replace"
    when = { worker = 0, phase = "before-commit", count = 12 }      # the worker that is stopped, and where
    by = 0                           # its own next incarnation; or another worker, which gets its partitions too
    fenced = "epoch"                 # or "never": its late commit must then have succeeded

This is for pipelines whose partitions are assigned by configuration: no group's generation protects them, so everything
depends on the transactional id (KIP-98). The stopped worker, now a zombie, continues when its successor has committed.
It is killed when it has been fenced, or after its first late commit.
"""

import signal
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field as Key

from onceproof.faults._fencing import not_fenced
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.process import Child
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.model.spec import FaultSpec, When
from onceproof.harness.record.events import Exited, FaultTarget, Outcome, ZombieLate
from onceproof.harness.record.history import Events

_DEADLINE_S = 60.0


class ReplaceSpec(FaultSpec):
    """The keys of `replace`.

    - `when`: the worker that is stopped by SIGSTOP, the phase and the transaction; required.
    - `by`: the worker that takes its partitions over, 0 to 3: the same number for its own next incarnation.
    - `fenced`: what must be seen for the run to count: the zombie is fenced by `epoch`, or it is `never` fenced and
      commits.
    """

    when: When
    by: Annotated[int, Key(ge=0, le=3)]
    fenced: Literal["epoch", "never"]


class Replaced:
    """The process that was replaced. Calling it ends the process, which undoes the fault."""

    def __init__(self, process: Child) -> None:
        """Keep the process of the zombie."""
        self.process = process

    def __call__(self) -> None:
        """Kill the process; harmless when it has ended."""
        self.process.kill()


class Replace:
    """A stopped worker is replaced by another process and then goes on."""

    name: ClassVar = "replace"
    about: ClassVar = "Stops a worker, replaces it by another process, and then lets it continue."
    params: ClassVar = ReplaceSpec

    def inject(self, context: FaultContext, fault: PlannedFault[ReplaceSpec]) -> Replaced:
        """Stop the worker, and start its successor."""
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
        zombie.send("go", fault=fault.id)  # the `go` that the nemesis sends reaches the successor only
        return Replaced(zombie)

    def hold(self, context: FaultContext, fault: PlannedFault[ReplaceSpec], undo: Replaced) -> None:
        """Wait for a commit of the successor, resume the zombie, and wait until it commits, fails or ends.

        Raises DeadlineError when one of the two takes longer than 60 s.
        """
        target = context.history.events().the(FaultTarget, fault=fault.id)
        context.wait(
            f"a commit of the successor, {target.by}",
            Outcome,
            lambda event: (
                event.type == "ok" and event.source == target.by and event.incarnation > (target.successor_after or 0)
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

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Return keys that replace a worker by its own next incarnation before its commit.

        None if a group assigns the partitions, if workers have no transactional id of their own, or if every worker is
        already hit.
        """
        worker = chance.worker() if chance.epochs and not chance.grouped else None
        if worker is None:
            return None
        when = chance.at(worker, "before-commit")
        return {"when": when, "by": worker, "fenced": "epoch"}

    def missing(self, fault: PlannedFault[ReplaceSpec], events: Events) -> str | None:
        """Return a message unless the zombie was fenced by epoch or, for `never`, made a late commit."""
        source = f"worker-{fault.spec.when.worker}"
        target = events.the(FaultTarget, fault=fault.id)
        late = events.first(ZombieLate, fault=fault.id)
        if late is None:
            return f"no successor of {source} committed"
        if fault.spec.fenced == "epoch":
            return not_fenced("epoch", target, late.at, events)
        commits = events.of(Outcome, type="ok", process=(source, target.incarnation))
        return (
            None
            if any(each.at > late.at for each in commits)
            else f"the zombie {source} did not commit after it was resumed"
        )


FAULT = Replace()
