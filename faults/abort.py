"""Make a worker's own code fail at a phase of its transaction.

    [[faults]]
    name = "abort"
    when = { worker = 0, phase = "offsets-sent", count = 12 }

The worker aborts the transaction, seeks back to its committed offsets, and reads the same inputs again. No broker and
no connection is affected. `when` selects the worker, the phase and the transaction; the phase `after-commit` is not
allowed, since nothing is left to abort then.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field as Key

from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.model.spec import FaultSpec, When
from onceproof.harness.record.events import FaultTarget
from onceproof.harness.record.history import Events


class AbortWhen(When):
    """The moment of an abort: any phase before the commit."""

    phase: Literal["polled", "begun", "produced", "offsets-sent", "before-commit"]


class AbortSpec(FaultSpec):
    """The keys of `abort`.

    - `when`: the worker, the phase and the transaction that is aborted.
    - `lasts_s`: time in seconds until the fault counts as healed, 0.5 by default.
    """

    when: AbortWhen
    lasts_s: Annotated[float, Key(gt=0, le=600)] = 0.5


class Abort:
    """A worker aborts its transaction, as if its own code had failed."""

    name: ClassVar = "abort"
    about: ClassVar = "Makes a worker abort its transaction at a phase, as if its own code had failed."
    params: ClassVar = AbortSpec

    def inject(self, context: FaultContext, fault: PlannedFault[AbortSpec]) -> Undo:
        """Tell the worker, which waits at the phase, to abort."""
        worker = fault.spec.when.worker
        context.note(
            FaultTarget(fault=fault.id, role=f"worker-{worker}", incarnation=context.workers.incarnation(worker))
        )
        context.workers.go(worker, fault.id, abort=True)
        return lambda: None

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Return keys that abort a transaction before its commit.

        None if every worker is already hit, or no offsets are sent in transactions.
        """
        if chance.workload.wiring.position != "in-transaction":
            return None
        worker = chance.worker()
        if worker is None:
            return None
        return {"when": chance.at(worker, "offsets-sent")}

    def missing(self, fault: PlannedFault[AbortSpec], events: Events) -> str | None:
        """Return a message unless the worker reported the error of its own code that makes it abort."""
        target = events.the(FaultTarget, fault=fault.id)
        if any(error.call == "process" for error in events.errors_met(target, target.at)):
            return None
        return f"{target.role} did not abort its transaction"


FAULT = Abort()
