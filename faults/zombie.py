"""Stop a worker with SIGSTOP past its time-outs, and resume it after its group or coordinator has given it up.

    [[faults]]
    name = "zombie"
    when = { worker = 0, phase = "produced", count = 20 }
    past = ["session"]               # default; "transaction": the coordinator has aborted its transaction
    fenced = "generation"            # or "epoch", "either", "any", or "never"
    lasts_s = 60                     # default: deadline for each of the time-outs to take effect

The worker is resumed when every time-out in `past` has taken effect: for `session`, the group has given its partitions
to other workers; for `transaction`, its coordinator has aborted its open transaction. `fenced` states what the worker
must then meet:

    generation   past its session, offsets not yet sent: a successor has committed on its partitions, and its offsets
                 are refused with an abortable error (KIP-447)
    never        past its session, offsets sent: the successor must wait, since the pending offsets are unstable
                 (KIP-447), and the zombie's commit succeeds; or stopped after its commit: it joins its group again;
                 or stopped before its offsets are sent, by a client that sends no generation with them: its successor
                 commits, and then the zombie commits the same inputs once more
    either       the worker is fenced by generation or by epoch; for scenarios whose other faults may delay it past its
                 transaction's time-out as well
    any          as `either`, or the client itself aborts the transaction, because it has timed out there too
    epoch        past its transaction's time-out, or past its session where a successor initialises the same
                 transactional id: the producer epoch was raised, and its requests are refused with a fatal error
                 (KIP-98)

A run in which the worker meets anything else is vacuous.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field as Key
from pydantic import model_validator

from onceproof.faults._fencing import Fenced, not_fenced
from onceproof.harness.base.deadlines import until
from onceproof.harness.cluster.described import Member
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.model.spec import OPEN_PHASES, FaultSpec, When
from onceproof.harness.record.events import FaultInjected, FaultTarget, Outcome, ZombieLate
from onceproof.harness.record.history import Events

# The phases at which its offsets are pending.
_SENT = ("offsets-sent", "before-commit")
_ASSIGNED_DEADLINE_S = 10.0
# For so long a successor asks in vain for offsets that are pending.
_PENDING_S = 1.0


class ZombieSpec(FaultSpec):
    """The keys of `zombie`.

    - `when`: the worker that is stopped, the phase and the transaction; required.
    - `past`: the time-outs that must have taken effect, `session` (default), `transaction` or both. With `transaction`,
      the phase must be one with an open transaction: `produced`, `offsets-sent` or `before-commit`.
    - `fenced`: how the worker must be fenced, by `generation`, by `epoch`, by `either` of them, or in `any` way, so
      that it does not commit its transaction; or `never`.
    - `lasts_s`: deadline in seconds for each time-out to take effect, 60 by default, 600 at most.
    """

    when: When
    past: Annotated[tuple[Literal["session", "transaction"], ...], Key(min_length=1, strict=False)] = ("session",)
    fenced: Fenced | Literal["any", "never"]
    lasts_s: Annotated[float, Key(gt=0, le=600)] = 60.0

    @model_validator(mode="after")
    def _has_a_transaction(self) -> "ZombieSpec":
        if "transaction" in self.past and self.when.phase not in OPEN_PHASES:
            raise ValueError(f"past: no transaction is open at {self.when.phase}; allowed: {', '.join(OPEN_PHASES)}")
        return self

    @property
    def pending(self) -> bool:
        """Whether the worker's offsets are sent and still pending when it is resumed."""
        return self.fenced == "never" and self.when.phase in _SENT


class Zombie:
    """A worker is stopped past its time-outs and then resumed."""

    name: ClassVar = "zombie"
    about: ClassVar = "Stops a worker past its time-outs, and resumes it when its group or coordinator has given it up."
    params: ClassVar = ZombieSpec
    needs: ClassVar = frozenset({"transaction-state"})

    def inject(self, context: FaultContext, fault: PlannedFault[ZombieSpec]) -> Undo:
        """Stop the worker; the returned function resumes it.

        Raises DeadlineError when the worker has no partition for ten seconds, where it must be seen to lose one.
        """
        worker = fault.spec.when.worker
        assigned = self._assigned(context, fault.spec)
        incarnation = context.workers.incarnation(worker)
        context.note(FaultTarget(fault=fault.id, role=f"worker-{worker}", incarnation=incarnation, partitions=assigned))
        context.workers.pause(worker)
        return lambda: context.workers.resume(worker)

    def hold(self, context: FaultContext, fault: PlannedFault[ZombieSpec], _undo: Undo) -> None:
        """Wait until the group, the coordinator or both have given the worker up.

        Raises DeadlineError when one of that takes longer than `lasts_s`.
        """
        spec = fault.spec
        target = context.history.events().the(FaultTarget, fault=fault.id)
        successor = self._succeeded(context, spec, set(target.partitions or ())) if "session" in spec.past else ""
        state = self._timed_out(context, spec) if "transaction" in spec.past else ""
        context.note(ZombieLate(fault=fault.id, successor=successor, state=state))

    def _succeeded(self, context: FaultContext, spec: ZombieSpec, lost: set[int]) -> str:
        """Return the worker that has committed on the zombie's partitions.

        A zombie that was stopped during a rebalance had none; then it is any worker of the group that commits after the
        zombie has left it. Empty when the zombie's offsets are pending, since no successor can commit before they are
        decided.
        """
        worker, names, since = spec.when.worker, context.names, len(context.history)
        if lost:
            until(
                f"the group to give the partitions of worker-{worker} to others: {sorted(lost)}",
                lambda: lost <= self._partitions(context, worker, of_others=True),
                deadline_s=spec.lasts_s,
            )
        else:
            until(
                f"worker-{worker} to be no member of its group",
                lambda: not any(context.workers.is_member(worker, each) for each in self._members(context, worker)),
                deadline_s=spec.lasts_s,
            )
            since = len(context.history)
        if spec.pending:
            context.aborted.wait(_PENDING_S)
            return ""

        def succeeds(event: Outcome) -> bool:
            other = event.worker != worker and names.read_by(event.worker) == names.read_by(worker)
            return other and (_commits(event, lost) if lost else event.type == "ok")

        where = f"on one of {sorted(lost)}" if lost else "in its group"
        commit = context.wait(f"a successor's commit {where}", Outcome, succeeds, deadline_s=spec.lasts_s, since=since)
        return commit.source

    def _timed_out(self, context: FaultContext, spec: ZombieSpec) -> str:
        """Return the state of the worker's transaction after the coordinator has ended it."""
        name = context.workers.transactional_id(spec.when.worker)

        def ended() -> str:
            found = context.cluster.admin.transaction(name)
            return "" if found.open else found.state

        return until(f"the coordinator to abort the open transaction of {name}", ended, deadline_s=spec.lasts_s)

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Return keys that stop a worker before it sends its offsets, or None if every worker is already hit.

        It is to be fenced past its session, or by epoch past both time-outs. Past its session, other faults of the
        period decide whether that is by generation or by epoch. If workers have no transactional id of their own, it is
        fenced past its session, in whichever way. If no group assigns the partitions, only the transaction's time-out
        counts.
        """
        if not chance.grouped and not (chance.epochs and chance.expires):
            return None  # nothing fences it
        worker = chance.worker()
        if worker is None:
            return None
        if not chance.grouped:
            ways = [(["transaction"], "epoch")]
        elif chance.epochs:
            ways = [(["session"], "either"), (["session", "transaction"], "epoch")][: 1 + chance.expires]
        else:
            ways = [(["session"], "any")]
        past, fenced = chance.dice.choice(ways)
        when = chance.at(worker, "produced")
        return {"when": when, "past": past, "fenced": fenced}

    def missing(self, fault: PlannedFault[ZombieSpec], events: Events) -> str | None:
        """Return a message unless the worker was given up and then fenced, or not fenced, as claimed."""
        spec = fault.spec
        worker, target = spec.when.worker, events.the(FaultTarget, fault=fault.id)
        late = events.first(ZombieLate, fault=fault.id)
        if late is None:
            return f"worker-{worker} was never taken for dead"
        own = events.of(Outcome, process=(f"worker-{worker}", target.incarnation))
        after = [each.type for each in own if each.at > late.at]
        if spec.fenced == "any":
            return f"worker-{worker} committed its transaction after it was resumed" if after[:1] == ["ok"] else None
        if spec.fenced != "never":
            return not_fenced(spec.fenced, target, late.at, events)
        if "ok" not in after:
            return f"worker-{worker} did not commit after it was resumed"
        lost, stopped = set(target.partitions or ()), events.the(FaultInjected, fault=fault.id).at
        early = [each for each in events.of(Outcome) if stopped < each.at < late.at]
        if spec.pending and any(_commits(each, lost) and each.worker != worker for each in early):
            return f"a successor of worker-{worker} committed before the pending offsets were decided"
        return None

    def _assigned(self, context: FaultContext, spec: ZombieSpec) -> list[int]:
        """Return the partitions that the group has assigned to the worker, in order.

        A worker without partitions, as during a rebalance, cannot be seen to lose them. Where no fencing error will
        show that it was a zombie, this waits for an assignment. Raises DeadlineError after ten seconds.
        """
        worker = spec.when.worker

        def assigned() -> list[int]:
            return sorted(self._partitions(context, worker, of_others=False))

        if spec.fenced != "never" or "session" not in spec.past:
            return assigned()
        return until(f"worker-{worker} to have a partition of its group", assigned, deadline_s=_ASSIGNED_DEADLINE_S)

    def _partitions(self, context: FaultContext, worker: int, *, of_others: bool) -> set[int]:
        """Return the partitions of a worker, or of the other members of its group, of the topic that they read."""
        _, read = context.names.read_by(worker)
        return {
            partition
            for member in self._members(context, worker)
            if context.workers.is_member(worker, member) != of_others
            for topic, partition in member.partitions
            if topic == read
        }

    @staticmethod
    def _members(context: FaultContext, worker: int) -> list[Member]:
        """Return the members of the worker's group."""
        group, _ = context.names.read_by(worker)
        return context.cluster.admin.members(group)


def _commits(event: Outcome, partitions: set[int]) -> bool:
    """Whether the event is a successful commit of inputs from one of these partitions."""
    return event.type == "ok" and bool(partitions & set(map(int, event.sources)))


FAULT = Zombie()
