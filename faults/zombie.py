"""F3: a worker stopped by SIGSTOP at a phase, past its time-outs, that comes back when it has been taken for dead.

    [[faults]]
    name = "zombie"
    when = { worker = 0, phase = "produced", count = 20 }
    past = ["session"]               # its group gives its partitions to others; "transaction": its coordinator aborts
    fenced = "generation"            # or "epoch", or "never": how it must be seen fenced

It is resumed when every time-out named in `past` has passed. What it meets then is what the scenario claims:

    generation   past its session, position not yet sent: a successor commits there, and the zombie's position is
                 refused, an abortable error (KIP-447)
    never        past its session, position sent: the successor must wait, since the pending offsets are unstable
                 (KIP-447), and the zombie's commit stands; or after its commit, when it just joins its group again
    epoch        past its transaction's time-out: the coordinator has raised the producer epoch, a fatal error (KIP-98)

A zombie that met something else shows nothing, and the run is `unknown`.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field as Key
from pydantic import model_validator

from onceproof.faults._fencing import Fenced, not_fenced
from onceproof.harness.base.deadlines import until
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.model.spec import FaultSpec, When
from onceproof.harness.record.events import FaultInjected, FaultTarget, Outcome, ZombieLate
from onceproof.harness.record.history import Events

# About the fewest that a worker makes: so the count stands for a time.
_TRANSACTIONS_PER_S = 2
# The phases at which its coordinator has an open transaction of it.
_OPEN = ("produced", "offsets-sent", "before-commit")
_ASSIGNED_DEADLINE_S = 10.0
# So long a successor asks for a position that is not decided.
_IN_VAIN_S = 1.0


class ZombieSpec(FaultSpec):
    when: When
    past: Annotated[tuple[Literal["session", "transaction"], ...], Key(min_length=1, strict=False)] = ("session",)
    fenced: Fenced | Literal["never"]
    lasts_s: Annotated[float, Key(gt=0, le=600)] = 60.0

    @model_validator(mode="after")
    def _has_a_transaction(self) -> "ZombieSpec":
        if "transaction" in self.past and self.when.phase not in _OPEN:
            raise ValueError(f"past: no transaction is open at {self.when.phase}; allowed: {', '.join(_OPEN)}")
        return self

    @property
    def pending(self) -> bool:
        """Whether its position is sent, and not decided when it comes back."""
        return self.fenced == "never" and self.when.phase != "after-commit"


class Zombie:
    name: ClassVar = "zombie"
    about: ClassVar = "a worker stopped past its time-outs, resumed when it was taken for dead"
    params: ClassVar = ZombieSpec
    needs: ClassVar = frozenset({"transaction-state"})

    def inject(self, context: FaultContext, fault: PlannedFault[ZombieSpec]) -> Undo:
        worker = fault.spec.when.worker
        mine = self._mine(context, fault.spec)
        incarnation = context.workers.incarnation(worker)
        context.note(FaultTarget(fault=fault.id, role=f"worker-{worker}", incarnation=incarnation, partitions=mine))
        context.workers.pause(worker)
        return lambda: context.workers.resume(worker)

    def hold(self, context: FaultContext, fault: PlannedFault[ZombieSpec], _undo: Undo) -> None:
        """Until it has been taken for dead, by its group or by its coordinator or by both."""
        spec = fault.spec
        target = context.history.events().the(FaultTarget, fault=fault.id)
        successor = self._succeeded(context, spec, set(target.partitions or ())) if "session" in spec.past else ""
        state = self._timed_out(context, spec) if "transaction" in spec.past else ""
        context.note(ZombieLate(fault=fault.id, successor=successor, state=state))

    def _succeeded(self, context: FaultContext, spec: ZombieSpec, lost: set[int]) -> str:
        """Who has committed where the zombie was. Nobody, when its position must be decided first."""
        worker, since = spec.when.worker, len(context.history)
        until(
            f"the group to give the partitions of worker-{worker} to others: {sorted(lost)}",
            lambda: lost <= self._partitions(context, lambda client: not client.startswith(f"worker-{worker}-")),
            deadline_s=spec.lasts_s,
        )
        if spec.pending:
            context.aborted.wait(_IN_VAIN_S)
            return ""
        commit = context.wait(
            f"a successor's commit on one of {sorted(lost)}",
            Outcome,
            lambda event: _commits(event, lost) and event.worker != worker,
            deadline_s=spec.lasts_s,
            since=since,
        )
        return commit.source

    def _timed_out(self, context: FaultContext, spec: ZombieSpec) -> str:
        """The state of its transaction, once the coordinator has ended it."""
        name = context.names.transactional_id(spec.when.worker)

        def ended() -> str:
            found = context.cluster.admin.transaction(name)
            return "" if found.open else found.state

        return until(f"the coordinator to abort the open transaction of {name}", ended, deadline_s=spec.lasts_s)

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Stopped before it sends its position: a member that lost its partitions, or a producer that was timed out."""
        worker = chance.worker()
        if worker is None:
            return None
        past, fenced = chance.dice.choice(((["session"], "generation"), (["session", "transaction"], "epoch")))
        count = max(1, round(chance.at_s * _TRANSACTIONS_PER_S))
        return {"when": {"worker": worker, "phase": "produced", "count": count}, "past": past, "fenced": fenced}

    def missing(self, fault: PlannedFault[ZombieSpec], events: Events) -> str | None:
        spec = fault.spec
        worker, target = spec.when.worker, events.the(FaultTarget, fault=fault.id)
        late = events.first(ZombieLate, fault=fault.id)
        if late is None:
            return f"worker-{worker} was never taken for dead"
        if spec.fenced != "never":
            return not_fenced(spec.fenced, target, late.at, events)
        own = events.of(Outcome, type="ok", process=(f"worker-{worker}", target.incarnation))
        if not any(each.at > late.at for each in own):
            return f"worker-{worker} did not commit when it came back"
        lost, stopped = set(target.partitions or ()), events.the(FaultInjected, fault=fault.id).at
        early = [each for each in events.of(Outcome) if stopped < each.at < late.at]
        if spec.pending and any(_commits(each, lost) and each.worker != worker for each in early):
            return f"a successor of worker-{worker} did not wait for its position to be decided"
        return None

    def _mine(self, context: FaultContext, spec: ZombieSpec) -> list[int]:
        """What the group has given to it. Who has nothing, as when a group shares out anew, cannot be seen to lose it:
        where no fence will show that it was a zombie, it is waited for. Raises DeadlineError."""
        worker = spec.when.worker

        def mine() -> list[int]:
            return sorted(self._partitions(context, lambda client: client.startswith(f"worker-{worker}-")))

        if spec.fenced != "never" or "session" not in spec.past:
            return mine()
        return until(f"worker-{worker} to have a partition of its group", mine, deadline_s=_ASSIGNED_DEADLINE_S)

    @staticmethod
    def _partitions(context: FaultContext, whose: Callable[[str], bool]) -> set[int]:
        """Input partitions that the group says the members with such client ids have."""
        return {
            partition
            for member in context.cluster.admin.members(context.names.group)
            if whose(member.client_id)
            for topic, partition in member.partitions
            if topic == context.names.input
        }


def _commits(event: Outcome, partitions: set[int]) -> bool:
    """Whether it is a commit that read from one of these input partitions."""
    return event.type == "ok" and bool(partitions & set(map(int, event.sources)))


FAULT = Zombie()
