"""Let retention remove every record of a topic, and with them the last ones of its producers (KIP-360).

    [[faults]]
    name = "retention"
    topic = "middle"                 # the intermediate topic of a chain
    when = { worker = 0, phase = "begun", count = 20 }

The worker that writes the topic waits at a phase before it sends anything. When the group has read the whole topic, its
`retention.ms` becomes 1 until the brokers have removed all segments, and then -1 again. The producer goes on with its
next sequence numbers in a partition that has none of its records any more. Up to Kafka 2.4 a broker had forgotten it
then, and refused it with UNKNOWN_PRODUCER_ID (KAFKA-7190); since 2.5 producers expire by time only.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field as Key

from onceproof.harness.base.deadlines import until
from onceproof.harness.context import settled
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.model.workload import Workload
from onceproof.harness.record.events import DeletedTo, RecordsDeleted
from onceproof.harness.record.history import Events

_DEADLINE_S = 30.0
_KEY, _NEVER = "retention.ms", "-1"


class RetentionSpec(FaultSpec):
    """The key of `retention`.

    - `topic`: the intermediate topic of a chain. Nobody stops writing the input, so it is never read to its end.
    """

    topic: Annotated[str, Key(pattern="^[a-z][a-z-]*$")]

    def topics(self, workload: Workload) -> Sequence[str]:
        """Return the intermediate topic, which a group reads and a worker that can wait writes."""
        return tuple(filter(None, (workload.intermediate_topic,)))


class Retention:
    """Retention removes every record of a topic."""

    name: ClassVar = "retention"
    about: ClassVar = "Lets retention remove all records of a topic that has been read, its producers' last ones too."
    params: ClassVar = RetentionSpec

    def inject(self, context: FaultContext, fault: PlannedFault[RetentionSpec]) -> Undo:
        """Wait until the topic has been read, and let retention remove its records.

        Raises DeadlineError when the group has not read the topic, or the brokers have not removed it, within 30 s.
        """
        admin, role = context.cluster.admin, fault.spec.topic
        topic = context.names.topic(role)
        partitions = [(topic, number) for number in range(context.plan.scenario.workload.partitions)]
        until(f"the group to have read {topic}", lambda: settled.lag(context, topic) == 0, deadline_s=_DEADLINE_S)
        group = next(group for group, read in context.names.read if read == topic)
        stable = admin.group_offsets(group)
        starts = admin.offsets(partitions, "earliest", "read_uncommitted")
        ends = admin.offsets(partitions, "latest", "read_uncommitted")
        try:
            admin.set_topic_config(topic, _KEY, "1")
            until(
                f"retention to remove all records of {topic}",
                lambda: admin.offsets(partitions, "earliest", "read_uncommitted") == ends,
                deadline_s=_DEADLINE_S,
            )
        finally:
            admin.set_topic_config(topic, _KEY, _NEVER)
        context.note(
            RecordsDeleted(
                fault=fault.id,
                to=_KEY,
                topic=role,
                partitions=[
                    DeletedTo(
                        partition=place[1],
                        position=stable.get(place, (0, ""))[0],
                        start=starts[place],
                        low_watermark=ends[place],
                        end=ends[place],
                    )
                    for place in partitions
                ],
            )
        )
        return lambda: admin.set_topic_config(topic, _KEY, _NEVER)

    def hold(self, context: FaultContext, fault: PlannedFault[RetentionSpec], _undo: Undo) -> None:
        """Return at once, since the records are not restored."""

    def missing(self, fault: PlannedFault[RetentionSpec], events: Events) -> str | None:
        """Return a message unless records were removed."""
        marks = [mark for event in events.of(RecordsDeleted, fault=fault.id) for mark in event.partitions]
        return None if any(mark.low_watermark > mark.start for mark in marks) else "no record was removed"


FAULT = Retention()
