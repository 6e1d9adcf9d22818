"""F11: another producer initialises a worker's transactional id: InitProducerId raises the epoch (KIP-98).

    [[faults]]
    name = "hijack"
    target = "worker-0"
    when = { worker = 0, phase = "produced", count = 12 }

The worker's open transaction is aborted by its coordinator, and whatever the worker does next gets a fatal error. Its
next incarnation takes the id back in the same way. Nothing of the transaction may be visible.
"""

from typing import Annotated, ClassVar

from confluent_kafka import Producer
from pydantic import Field as Key

from onceproof.faults._fencing import not_fenced
from onceproof.harness.cluster import topology
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.record.events import Exited, FaultTarget, Outcome
from onceproof.harness.record.history import Events

_INIT_DEADLINE_S = 30.0
_FENCED_DEADLINE_S = 30.0


class HijackSpec(FaultSpec):
    target: Annotated[str, Key(pattern=r"^worker-[0-3]$")]


class Hijack:
    name: ClassVar = "hijack"
    about: ClassVar = "another producer initialises a worker's transactional id"
    params: ClassVar = HijackSpec

    def inject(self, context: FaultContext, fault: PlannedFault[HijackSpec]) -> Undo:
        worker = int(fault.spec.target.removeprefix("worker-"))
        name = context.names.transactional_id(worker)
        context.note(
            FaultTarget(
                fault=fault.id,
                role=fault.spec.target,
                node=name,
                incarnation=context.workers.incarnation(worker),
            )
        )
        initialise(context, name)
        return lambda: None

    def hold(self, context: FaultContext, fault: PlannedFault[HijackSpec], _undo: Undo) -> None:
        """Until the worker has met it and died."""
        target = context.history.events().the(FaultTarget, fault=fault.id)
        context.wait(
            f"{target.role} to be fenced",
            Exited,
            lambda event: event.process == (target.role, target.incarnation),
            deadline_s=_FENCED_DEADLINE_S,
        )

    def missing(self, fault: PlannedFault[HijackSpec], events: Events) -> str | None:
        target = events.the(FaultTarget, fault=fault.id)
        commits = [e.at for e in events.of(Outcome, type="ok", process=(target.role, target.incarnation))]
        return not_fenced("epoch", target, max(target.at, *commits, 0), events)


def initialise(context: FaultContext, transactional_id: str) -> None:
    """InitProducerId, as another process would send it; waits for its answer. Raises KafkaException."""
    bootstrap = context.cluster.bootstrap(topology.OBSERVER_LANE)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "log_level": 3,
            "client.id": "hijacker",
            **context.plan.scenario.client_config,
        }
    )
    producer.init_transactions(_INIT_DEADLINE_S)


FAULT = Hijack()
