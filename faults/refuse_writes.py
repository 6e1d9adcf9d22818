"""Writes to an output topic are refused: its max.message.bytes is set below the size of any record.

    [[faults]]
    name = "refuse-writes"
    topic = "output"
    when = { worker = 0, phase = "begun", count = 8 }
    lasts_s = 4

Each produce gets MESSAGE_TOO_LARGE, as it does when somebody changes a topic under a running pipeline. Coordinators and
the consumer's side are untouched, and transaction markers are small enough to pass, so this is the plain way to an
abort by a worker that keeps its partitions: what it does next, with or without seeking back, is its own.

(min.insync.replicas above the number of replicas does not do it: brokers take the smaller of the two.)
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field as Key

from onceproof.harness.base.deadlines import until
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.record.events import FaultInjected, FaultTarget, Outcome
from onceproof.harness.record.history import Events

_KEY = "max.message.bytes"
_REFUSED = "100"  # a record's batch is larger, a marker's (78 bytes) is not
_ALLOWED = "1048588"
_HEAL_DEADLINE_S = 30.0


class RefuseWritesSpec(FaultSpec):
    topic: Annotated[str, Key(pattern="^[a-z][a-z-]*$")] = "output"


class RefuseWrites:
    name: ClassVar = "refuse-writes"
    about: ClassVar = "writes to an output topic get MESSAGE_TOO_LARGE"
    params: ClassVar = RefuseWritesSpec

    def inject(self, context: FaultContext, fault: PlannedFault[RefuseWritesSpec]) -> Undo:
        admin, topic = context.cluster.admin, context.names.topic(fault.spec.topic)
        context.note(FaultTarget(fault=fault.id, role=fault.spec.topic, node=topic))
        admin.set_topic_config(topic, _KEY, _REFUSED)

        def undo() -> None:
            def allowed() -> bool:
                admin.set_topic_config(topic, _KEY, _ALLOWED)
                return True

            until(f"{_KEY} of {topic} to be set back", allowed, deadline_s=_HEAL_DEADLINE_S)

        return undo

    def draw(self, chance: Chance) -> Mapping[str, Any]:
        return {"topic": chance.dice.choice(chance.topics), "lasts_s": chance.seconds(1.5, 2.9)}

    def missing(self, fault: PlannedFault[RefuseWritesSpec], events: Events) -> str | None:
        """A transaction must have been aborted for it."""
        injected = events.the(FaultInjected, fault=fault.id).at
        if any(each.at > injected for each in events.of(Outcome, type="fail")):
            return None
        return "no transaction was aborted"


FAULT = RefuseWrites()
