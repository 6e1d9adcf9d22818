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

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field as Key

from faults._told import told
from harness.draw import Chance
from harness.field import Field
from harness.plan import PlannedFault
from harness.protocols import Event, Undo
from harness.scenario import FaultSpec
from harness.wait import until

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

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        assert isinstance(fault.spec, RefuseWritesSpec)
        admin, topic = field.cluster.admin, field.names.topic(fault.spec.topic)
        field.note("fault-target", fault=fault.id, role=fault.spec.topic, node=topic)
        admin.set_topic_config(topic, _KEY, _REFUSED)

        def undo() -> None:
            def allowed() -> bool:
                admin.set_topic_config(topic, _KEY, _ALLOWED)
                return True

            until(f"{_KEY} of {topic} to be set back", allowed, deadline_s=_HEAL_DEADLINE_S)

        return undo

    def draw(self, chance: Chance) -> Mapping[str, Any]:
        return {"topic": chance.dice.choice(chance.topics), "lasts_s": chance.seconds(1.5, 2.9)}

    def missing(self, fault: PlannedFault, events: Sequence[Event]) -> str | None:
        """A transaction must have been aborted for it."""
        injected = told("fault-injected", fault, events)["at"]
        if any(e["event"] == "outcome" and e["type"] == "fail" and e["at"] > injected for e in events):
            return None
        return "no transaction was aborted"


FAULT = RefuseWrites()
