"""Let a worker wait until its transaction, its transactional id or its producer id has expired.

    [[faults]]
    name = "expire"
    what = "transactional-id"        # or "transaction", "producer-id"
    when = { worker = 0, phase = "polled", count = 20 }

The worker waits at the phase, and its group still hears from it, so nobody takes its partitions over. What it meets
when it goes on depends on what has expired:

- `transaction`: the coordinator has aborted it (`transaction.timeout.ms`); choose a phase at which it is open.
- `transactional-id`: the coordinator has forgotten it (`transactional.id.expiration.ms`, KAFKA-6840), and refuses its
  producer id with INVALID_PRODUCER_ID_MAPPING.
- `producer-id`: the leaders of the outputs have forgotten its sequence numbers (`producer.id.expiration.ms`, KIP-854).

The scenario sets short times in `[cluster] settings`, also for the brokers' checks:
`transaction.remove.expired.transaction.cleanup.interval.ms` and `producer.id.expiration.check.interval.ms`.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from pydantic import model_validator

from onceproof.harness.base.deadlines import until
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.model.spec import OPEN_PHASES, FaultSpec, When
from onceproof.harness.record.events import Expired, FaultTarget, Outcome
from onceproof.harness.record.history import Events

_KNOWN_DEADLINE_S = 5.0
_DEADLINE_S = 60.0


class ExpireSpec(FaultSpec):
    """The keys of `expire`.

    - `what`: what expires: the worker's `transaction`, its `transactional-id` or its `producer-id`.
    - `when`: the worker, and the phase and transaction at which it waits.
    """

    what: Literal["transaction", "transactional-id", "producer-id"]
    when: When

    @model_validator(mode="after")
    def _has_a_transaction(self) -> "ExpireSpec":
        if self.what == "transaction" and self.when.phase not in OPEN_PHASES:
            raise ValueError(f"when: no transaction is open at {self.when.phase}; allowed: {', '.join(OPEN_PHASES)}")
        return self


class Expire:
    """What the brokers know of a producer expires while it waits."""

    name: ClassVar = "expire"
    about: ClassVar = "Lets a worker wait until its transaction, transactional id or producer id has expired."
    params: ClassVar = ExpireSpec
    needs: ClassVar = frozenset({"transaction-state"})

    def inject(self, context: FaultContext, fault: PlannedFault[ExpireSpec]) -> Undo:
        """Wait until it has expired. Raises DeadlineError when it has not within 60 s, or was not known before."""
        worker, what = fault.spec.when.worker, fault.spec.what
        name = context.workers.transactional_id(worker)
        context.note(FaultTarget(fault=fault.id, role=f"worker-{worker}", transactional_id=name))
        expired = _expired(context, what, name)
        until(f"the brokers to know the {what} of {name}", lambda: not expired(), deadline_s=_KNOWN_DEADLINE_S)
        began = time.monotonic()
        until(f"the {what} of {name} to expire", expired, deadline_s=_DEADLINE_S)
        context.note(Expired(fault=fault.id, what=what, after_s=round(time.monotonic() - began, 1)))
        return lambda: None

    def hold(self, context: FaultContext, fault: PlannedFault[ExpireSpec], _undo: Undo) -> None:
        """Return at once: the worker goes on."""

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Return keys that let a worker's open transaction expire.

        None if workers have no transactional id of their own, if that takes too long, or if every worker is already
        hit. Ids are not drawn, since they expire in time only where the brokers' settings are short.
        """
        worker = chance.worker() if chance.epochs and chance.expires else None
        if worker is None:
            return None
        when = chance.at(worker, "produced")
        return {"what": "transaction", "when": when}

    def missing(self, fault: PlannedFault[ExpireSpec], events: Events) -> str | None:
        """Return a message unless it has expired, and the worker has committed a transaction afterwards."""
        expired = events.first(Expired, fault=fault.id)
        if expired is None:
            return f"the {fault.spec.what} did not expire"
        worker = f"worker-{fault.spec.when.worker}"
        after = [each for each in events.of(Outcome, source=worker, type="ok") if each.at > expired.at]
        return None if after else f"{worker} committed nothing afterwards"


def _expired(context: FaultContext, what: str, name: str) -> Callable[[], bool]:
    """Return a query whether it has expired."""
    admin = context.cluster.admin
    if what == "transaction":
        return lambda: not admin.transaction(name).open
    if what == "transactional-id":
        return lambda: name not in admin.transactional_ids(name)
    producer = admin.transaction(name).producer_id
    topics = [context.names.topic(role) for role in context.plan.scenario.pipeline.topics]
    places = [(topic, number) for topic in topics for number in range(context.plan.scenario.workload.partitions)]
    return lambda: producer not in admin.producer_ids(places)


FAULT = Expire()
