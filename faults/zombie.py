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

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field as Key
from pydantic import model_validator

from faults._fencing import Fenced, not_fenced
from faults._told import told
from harness.draw import Chance
from harness.field import Field
from harness.plan import PlannedFault
from harness.protocols import Event, Undo
from harness.scenario import FaultSpec, When
from harness.wait import until

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

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        assert isinstance(fault.spec, ZombieSpec)
        worker = fault.spec.when.worker
        mine = self._mine(field, fault.spec)
        incarnation = field.crew.incarnation(worker)
        field.note("fault-target", fault=fault.id, role=f"worker-{worker}", incarnation=incarnation, partitions=mine)
        field.crew.pause(worker)
        return lambda: field.crew.resume(worker)

    def hold(self, field: Field, fault: PlannedFault) -> None:
        """Until it has been taken for dead, by its group or by its coordinator or by both."""
        spec = fault.spec
        assert isinstance(spec, ZombieSpec)
        target = told("fault-target", fault, field.history.events())
        successor = self._succeeded(field, spec, set(target["partitions"])) if "session" in spec.past else ""
        state = self._timed_out(field, spec) if "transaction" in spec.past else ""
        field.note("zombie-late", fault=fault.id, successor=successor, state=state)

    def _succeeded(self, field: Field, spec: ZombieSpec, lost: set[int]) -> str:
        """Who has committed where the zombie was. Nobody, when its position must be decided first."""
        worker, since = spec.when.worker, len(field.history.events())
        until(
            f"the group to give the partitions of worker-{worker} to others: {sorted(lost)}",
            lambda: lost <= self._partitions(field, lambda client: not client.startswith(f"worker-{worker}-")),
            deadline_s=spec.lasts_s,
        )
        if spec.pending:
            field.aborted.wait(_IN_VAIN_S)
            return ""
        commit = field.wait(
            f"a successor's commit on one of {sorted(lost)}", lambda e: _commits(e, lost) and not _is(worker, e),
            deadline_s=spec.lasts_s, since=since,
        )  # fmt: skip
        return str(commit["source"])

    def _timed_out(self, field: Field, spec: ZombieSpec) -> str:
        """The state of its transaction, once the coordinator has ended it."""
        name = field.names.transactional_id(spec.when.worker)

        def ended() -> str:
            found = field.cluster.admin.transaction(name)
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

    def missing(self, fault: PlannedFault, events: Sequence[Event]) -> str | None:
        spec = fault.spec
        assert isinstance(spec, ZombieSpec)
        worker, target = spec.when.worker, told("fault-target", fault, events)
        late = [e["at"] for e in events if e["event"] == "zombie-late" and e["fault"] == fault.id]
        if not late:
            return f"worker-{worker} was never taken for dead"
        if spec.fenced != "never":
            return not_fenced(spec.fenced, target, late[0], events)
        if not any(e["event"] == "outcome" and e["type"] == "ok" and _is(worker, e) and e["at"] > late[0]
                   and e["incarnation"] == target["incarnation"] for e in events):  # fmt: skip
            return f"worker-{worker} did not commit when it came back"
        lost, stopped = set(target["partitions"]), told("fault-injected", fault, events)["at"]
        early = (e for e in events if stopped < e["at"] < late[0])
        if spec.pending and any(_commits(e, lost) and not _is(worker, e) for e in early):
            return f"a successor of worker-{worker} did not wait for its position to be decided"
        return None

    def _mine(self, field: Field, spec: ZombieSpec) -> list[int]:
        """What the group has given to it. Who has nothing, as when a group shares out anew, cannot be seen to lose it:
        where no fence will show that it was a zombie, it is waited for. Raises DeadlineError."""
        worker = spec.when.worker

        def mine() -> list[int]:
            return sorted(self._partitions(field, lambda client: client.startswith(f"worker-{worker}-")))

        if spec.fenced != "never" or "session" not in spec.past:
            return mine()
        return until(f"worker-{worker} to have a partition of its group", mine, deadline_s=_ASSIGNED_DEADLINE_S)

    @staticmethod
    def _partitions(field: Field, whose: Callable[[str], bool]) -> set[int]:
        """Input partitions that the group says the members with such client ids have."""
        return {
            partition
            for member in field.cluster.admin.members(field.names.group) if whose(member.client_id)
            for topic, partition in member.partitions if topic == field.names.input
        }  # fmt: skip


def _commits(event: Event, partitions: set[int]) -> bool:
    """Whether it is a commit that read from one of these input partitions."""
    return (
        event["event"] == "outcome" and event["type"] == "ok" and bool(partitions & {int(p) for p in event["sources"]})
    )


def _is(worker: int, event: Event) -> bool:
    return bool(event["source"] == f"worker-{worker}")


FAULT = Zombie()
