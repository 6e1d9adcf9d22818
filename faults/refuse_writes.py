"""Make the brokers refuse all records for a topic, by setting its max.message.bytes below the size of any record.

    [[faults]]
    name = "refuse-writes"
    topic = "output"                 # default; by the workload's name for it
    when = { worker = 0, phase = "begun", count = 8 }
    lasts_s = 4

Each produce request gets MESSAGE_TOO_LARGE, as when somebody changes a topic's configuration under a running pipeline.
Coordinators and consumers are not affected, and transaction markers are small enough to be written. So a worker must
abort while it keeps its partitions, and whether it then seeks back is up to the pipeline.

Setting min.insync.replicas above the number of replicas would not have this effect: brokers use the smaller of the two.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field as Key

from onceproof.harness.base.deadlines import until
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.record.events import FaultHealed, FaultInjected, FaultTarget, Outcome
from onceproof.harness.record.history import Events

_KEY = "max.message.bytes"
# The size of a batch with a marker, in bytes. One with a single short record is larger: Java's client divides a batch
# that is too large, down to its records.
_REFUSED = "78"
_ALLOWED = "1048588"  # bytes: Kafka's default
_LEADER = "controller-leader"
_HEAL_DEADLINE_S = 30.0
_REPORTED_S = 10.0  # after which a worker has ended a transaction with a record that was refused


class RefuseWritesSpec(FaultSpec):
    """The key of `refuse-writes`.

    - `topic`: the topic whose records are refused, by the workload's name for it, `output` by default.
    """

    topic: Annotated[str, Key(pattern="^[a-z][a-z-]*$")] = "output"


class RefuseWrites:
    """Records for a topic are refused."""

    name: ClassVar = "refuse-writes"
    about: ClassVar = "Makes the brokers refuse writes to an output topic with MESSAGE_TOO_LARGE."
    params: ClassVar = RefuseWritesSpec

    def inject(self, context: FaultContext, fault: PlannedFault[RefuseWritesSpec]) -> Undo:
        """Lower max.message.bytes of the topic; the returned function sets it back.

        That function retries for 30 s, and then raises DeadlineError.
        """
        admin, topic = context.cluster.admin, context.names.topic(fault.spec.topic)
        context.note(FaultTarget(fault=fault.id, role=fault.spec.topic, node=topic))
        admin.set_topic_config(topic, _KEY, _REFUSED)

        def undo() -> None:
            def allowed() -> bool:
                admin.set_topic_config(topic, _KEY, _ALLOWED)
                return True

            until(f"{_KEY} of {topic} to be set back", allowed, deadline_s=_HEAL_DEADLINE_S)

        return undo

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Return keys that refuse the records for an output topic for 1.5 to 2.9 seconds.

        None if the workers write no topic, and in a period in which a fault affects the leader of the controllers, who
        must set the topic's configuration back. No later fault of the period will affect it.
        """
        if not chance.topics or chance.drawn == _LEADER:
            return None
        chance.nodes = [role for role in chance.nodes if role != _LEADER]
        return {"topic": chance.dice.choice(chance.topics), "lasts_s": chance.seconds(1.5, 2.9)}

    def missing(self, fault: PlannedFault[RefuseWritesSpec], events: Events) -> str | None:
        """Return a message unless a transaction was aborted while the writes were refused, or shortly afterwards."""
        injected, healed = events.the(FaultInjected, fault=fault.id).at, events.first(FaultHealed, fault=fault.id)
        end = math.inf if healed is None else healed.at + _REPORTED_S
        if any(injected < each.at < end for each in events.of(Outcome, type="fail")):
            return None
        return "no transaction was aborted while the writes were refused"


FAULT = RefuseWrites()
