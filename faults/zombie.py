"""F3: a worker stopped by SIGSTOP at a phase, past its time-outs, that comes back after its successor took over.

    [[faults]]
    name = "zombie"
    when = { worker = 0, phase = "produced", count = 20 }
    past = ["session"]               # and "transaction", to come back after the coordinator aborted its transaction
    fenced = "generation"            # or "epoch": how it must be seen fenced

It is resumed when the group has given its partitions to others, one of them has committed there, and every time-out
named in `past` has passed. What it meets then is what the scenario claims: by generation, an abortable error (KIP-447);
by epoch, a fatal one (KIP-98). A zombie that never lost its partitions shows nothing, and the run is `unknown`.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field as Key

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


class ZombieSpec(FaultSpec):
    when: When
    past: Annotated[tuple[Literal["session", "transaction"], ...], Key(min_length=1, strict=False)] = ("session",)
    fenced: Fenced
    lasts_s: Annotated[float, Key(gt=0, le=600)] = 60.0


class Zombie:
    name: ClassVar = "zombie"
    about: ClassVar = "a worker stopped past its time-outs, resumed after its successor took over; must be fenced"
    params: ClassVar = ZombieSpec

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        assert isinstance(fault.spec, ZombieSpec)
        worker = fault.spec.when.worker
        mine = self._partitions(field, worker)
        incarnation = field.crew.incarnation(worker)
        field.note("fault-target", fault=fault.id, role=f"worker-{worker}", incarnation=incarnation, partitions=mine)
        field.crew.pause(worker)
        return lambda: field.crew.resume(worker)

    def hold(self, field: Field, fault: PlannedFault) -> None:
        """Until the successor has committed where the zombie was, and the time-outs have passed."""
        spec = fault.spec
        assert isinstance(spec, ZombieSpec)
        worker, since = spec.when.worker, len(field.history.events())
        target = told("fault-target", fault, field.history.events())
        lost = set(target["partitions"])
        until(
            f"worker-{worker} to lose its partitions {sorted(lost)}",
            lambda: not lost & set(self._partitions(field, worker)),
            deadline_s=spec.lasts_s,
        )
        commit = field.wait(
            f"a successor's commit on one of {sorted(lost)}",
            lambda e: e["event"] == "outcome" and e["type"] == "ok" and e["source"] != f"worker-{worker}"
            and bool(lost & {int(p) for p in e["sources"]}),
            deadline_s=spec.lasts_s, since=since,
        )  # fmt: skip
        state = ""
        if "transaction" in spec.past:
            name = field.names.transactional_id(worker)
            until(
                f"the coordinator to abort the open transaction of {name}",
                lambda: not field.cluster.admin.transaction(name).open,
                deadline_s=spec.lasts_s,
            )
            state = field.cluster.admin.transaction(name).state
        field.note("zombie-succeeded", fault=fault.id, successor=commit["source"], partitions=sorted(lost), state=state)

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
        source = f"worker-{spec.when.worker}"
        succeeded = [e for e in events if e["event"] == "zombie-succeeded" and e["fault"] == fault.id]
        if not succeeded:
            return f"the zombie {source} never lost its partitions to a successor that committed"
        resumed = succeeded[0]["at"]
        return not_fenced(spec.fenced, source, resumed, events)

    @staticmethod
    def _partitions(field: Field, worker: int) -> list[int]:
        """Input partitions that the group says this worker has, by the client id that it joined with."""
        prefix = f"worker-{worker}-"
        return sorted(
            partition
            for member in field.cluster.admin.members(field.names.group) if member.client_id.startswith(prefix)
            for topic, partition in member.partitions if topic == field.names.input
        )  # fmt: skip


FAULT = Zombie()
