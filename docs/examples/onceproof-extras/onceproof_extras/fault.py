"""Roll the log of an output topic into many short segments while workers write to it.

    [[faults]]
    name = "roll-segments"
    topic = "output"
    every_ms = 500
    at_s = 4
    lasts_s = 5

A transaction then spans several segments. A read_committed reader has to find its aborted ranges in the transaction
index of each of them, and a broker that restarts has to restore its producer state from more snapshots.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from onceproof.harness.base.deadlines import until
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Fault, Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.record.events import FaultTarget, Noted
from onceproof.harness.record.history import Events

_KEY = "segment.ms"
_RESTORED_MS = 87_600 * 3_600_000  # log.roll.hours of onceproof's brokers
_RESTORE_DEADLINE_S = 30.0


class RollSegmentsSpec(FaultSpec):
    """The keys of `roll-segments`."""

    topic: Annotated[str, Field(pattern="^[a-z][a-z-]*$", description="Output topic, by the workload's name.")] = (
        "output"
    )
    every_ms: Annotated[int, Field(ge=100, le=60_000, description="Time after which a segment is rolled.")] = 500


class RollSegments:
    """The log of an output topic is rolled into short segments."""

    name: ClassVar = "roll-segments"
    about: ClassVar = "Rolls the log of an output topic into short segments, a new one every every_ms."
    params: ClassVar = RollSegmentsSpec
    needs: ClassVar = frozenset({"log-access"})

    def inject(self, context: FaultContext, fault: PlannedFault[RollSegmentsSpec]) -> Undo:
        """Shorten the topic's segments; the returned function restores them and reports how many were rolled."""
        admin, topic = context.cluster.admin, context.names.topic(fault.spec.topic)
        before = _segments(context, topic)
        context.note(FaultTarget(fault=fault.id, role=fault.spec.topic, node=topic))
        admin.set_topic_config(topic, _KEY, str(fault.spec.every_ms))

        def undo() -> None:
            def restored() -> bool:
                admin.set_topic_config(topic, _KEY, str(_RESTORED_MS))
                return True

            until(f"{_KEY} of {topic} to be restored", restored, deadline_s=_RESTORE_DEADLINE_S)
            rolled = _segments(context, topic) - before
            context.note(Noted(fault=fault.id, what="segments", data={"before": before, "rolled": rolled}))

        return undo

    def missing(self, fault: PlannedFault[RollSegmentsSpec], events: Events) -> str | None:
        """Return a message unless the brokers rolled at least one segment."""
        counted = events.first(Noted, fault=fault.id, what="segments")
        if counted is None or not counted.data["rolled"]:
            return f"no segment of {fault.spec.topic} was rolled"
        return None


def _segments(context: FaultContext, topic: str) -> int:
    """How many log segments the topic has on all brokers."""
    folders = context.cluster.log_dirs().values()
    return sum(1 for folder in folders for _ in folder.glob(f"{topic}-*/*.log"))


FAULT: Fault[RollSegmentsSpec] = RollSegments()
