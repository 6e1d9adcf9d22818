"""F11: another producer initialises a worker's transactional id: InitProducerId raises the epoch (KIP-98).

    [[faults]]
    name = "hijack"
    target = "worker-0"
    when = { worker = 0, phase = "produced", count = 12 }

The worker's open transaction is aborted by its coordinator, and whatever the worker does next gets a fatal error. Its
next incarnation takes the id back in the same way. Nothing of the transaction may be visible.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from confluent_kafka import Producer
from pydantic import Field as Key

from faults._fencing import not_fenced
from faults._told import told
from harness import topology
from harness.field import Field
from harness.plan import PlannedFault
from harness.protocols import Event, Undo
from harness.scenario import FaultSpec

_INIT_DEADLINE_S = 30.0
_FENCED_DEADLINE_S = 30.0


class HijackSpec(FaultSpec):
    target: Annotated[str, Key(pattern=r"^worker-[0-3]$")]


class Hijack:
    name: ClassVar = "hijack"
    about: ClassVar = "another producer initialises a worker's transactional id"
    params: ClassVar = HijackSpec

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        assert isinstance(fault.spec, HijackSpec)
        worker = int(fault.spec.target.removeprefix("worker-"))
        name = field.names.transactional_id(worker)
        field.note("fault-target", fault=fault.id, role=fault.spec.target, node=name,
                   incarnation=field.crew.incarnation(worker))  # fmt: skip
        initialise(field, name)
        return lambda: None

    def hold(self, field: Field, fault: PlannedFault) -> None:
        """Until the worker has met it and died."""
        target = told("fault-target", fault, field.history.events())
        field.wait(
            f"{target['role']} to be fenced",
            lambda e: e["event"] == "exited" and e["source"] == target["role"]
            and e["incarnation"] == target["incarnation"],
            deadline_s=_FENCED_DEADLINE_S,
        )  # fmt: skip

    def missing(self, fault: PlannedFault, events: Sequence[Event]) -> str | None:
        target = told("fault-target", fault, events)
        commits = (
            e["at"] for e in events if e["event"] == "outcome" and e["type"] == "ok" and e["source"] == target["role"]
            and e["incarnation"] == target["incarnation"]
        )  # fmt: skip
        return not_fenced("epoch", target, max(target["at"], *commits, 0), events)


def initialise(field: Field, transactional_id: str) -> None:
    """InitProducerId, as another process would send it; waits for its answer. Raises KafkaException."""
    bootstrap = field.cluster.bootstrap(topology.OBSERVER_LANE)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "log_level": 3,
                         "client.id": "hijacker", **field.plan.scenario.client_config})  # fmt: skip
    producer.init_transactions(_INIT_DEADLINE_S)


FAULT = Hijack()
