"""Initialise a worker's transactional id from another producer, which fences the worker by epoch (KIP-98).

    [[faults]]
    name = "hijack"
    target = "worker-0"              # the worker whose transactional id is taken
    when = { worker = 0, phase = "produced", count = 12 }

InitProducerId raises the producer epoch, and the coordinator aborts the worker's open transaction. The worker's next
call fails with a fatal error, and the worker exits. Its next incarnation takes the transactional id back in the same
way. No record of the aborted transaction may be visible.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from confluent_kafka import KafkaException, Producer
from pydantic import Field as Key

from onceproof.faults._fencing import not_fenced
from onceproof.harness.base.errors import DeadlineError
from onceproof.harness.cluster import topology
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.record.events import Exited, FaultTarget, Outcome
from onceproof.harness.record.history import Events

_INIT_DEADLINE_S = 30.0
_FENCED_DEADLINE_S = 30.0


class HijackSpec(FaultSpec):
    """The key of `hijack`.

    - `target`: the worker whose transactional id is taken, `worker-0` to `worker-3`.
    """

    target: Annotated[str, Key(pattern=r"^worker-[0-3]$")]


class Hijack:
    """Another producer takes a worker's transactional id."""

    name: ClassVar = "hijack"
    about: ClassVar = "Initialises a worker's transactional id from another producer, which fences the worker."
    params: ClassVar = HijackSpec

    def inject(self, context: FaultContext, fault: PlannedFault[HijackSpec]) -> Undo:
        """Initialise the transactional id from a new producer. Raises as `initialise` does."""
        worker = int(fault.spec.target.removeprefix("worker-"))
        name = context.workers.transactional_id(worker)
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
        """Wait until the fenced worker has exited. Raises DeadlineError after 30 s."""
        target = context.history.events().the(FaultTarget, fault=fault.id)
        context.wait(
            f"{target.role} to exit after it was fenced",
            Exited,
            lambda event: event.process == (target.role, target.incarnation),
            deadline_s=_FENCED_DEADLINE_S,
        )

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Return keys that take the transactional id of a worker with an open transaction.

        None if workers have no transactional id of their own, or if every worker is already hit; and for an
        application, which may go on with another producer in place of ending.
        """
        worker = chance.worker() if chance.epochs and chance.scenario.app is None else None
        if worker is None:
            return None
        return {
            "target": f"worker-{worker}",
            "when": chance.at(worker, "produced"),
        }

    def missing(self, fault: PlannedFault[HijackSpec], events: Events) -> str | None:
        """Return a message unless the worker reported being fenced by epoch after its last commit."""
        target = events.the(FaultTarget, fault=fault.id)
        commits = [e.at for e in events.of(Outcome, type="ok", process=(target.role, target.incarnation))]
        return not_fenced("epoch", target, max(target.at, *commits, 0), events)


def initialise(context: FaultContext, transactional_id: str) -> None:
    """Send InitProducerId for a transactional id, as another process would, and wait for the response.

    Raises DeadlineError when no coordinator has done it within 30 s, and KafkaException when it is refused.
    """
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
    try:
        producer.init_transactions(_INIT_DEADLINE_S)
    except KafkaException as error:
        if not error.args[0].retriable():
            raise
        raise DeadlineError(f"waited {_INIT_DEADLINE_S:g} s for InitProducerId of {transactional_id}") from error


FAULT = Hijack()
