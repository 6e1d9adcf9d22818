"""Delete records of a topic that a group reads: below, up to or beyond the group's committed offsets.

    [[faults]]
    name = "delete-records"
    to = "behind"                # or "up-to", or "past"
    topic = "input"              # default; or the intermediate topic of a chain
    at_s = 6

In each partition, `to = "behind"` deletes half of the records below the committed offset, and `to = "up-to"` deletes
all of them, as Kafka Streams does with its repartition topics. Neither may lose anything. `to = "past"` deletes half of
the records between the committed offset and the end of the log. A consumer that fetches from its committed offset then
gets OFFSET_OUT_OF_RANGE and follows auto.offset.reset, and `reset-skip` must be found.

The history records the committed offsets before the deletion, and the low watermarks that the brokers returned. They
bound which inputs `reset-skip` and `reset-reprocess` may explain. The deletion is not undone.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field as Key

from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.model.workload import Workload
from onceproof.harness.record.events import DeletedTo, RecordsDeleted
from onceproof.harness.record.history import Events

_OFFSETS_DEADLINE_S = 30.0


class DeleteRecordsSpec(FaultSpec):
    """The keys of `delete-records`.

    - `to`: how far records are deleted: `behind`, `up-to` or `past` the committed offset.
    - `topic`: the topic, by the workload's name for it: `input` (default), or the intermediate topic of a chain.
    """

    to: Literal["behind", "up-to", "past"]
    topic: Annotated[str, Key(pattern="^[a-z][a-z-]*$")] = "input"

    def topics(self, workload: Workload) -> Sequence[str]:
        """Return the topics that a group reads; others have no committed offset to delete up to."""
        return workload.read_topics


class DeleteRecords:
    """Records are deleted relative to the committed offsets."""

    name: ClassVar = "delete-records"
    about: ClassVar = "Deletes records below the committed offset, up to it, or beyond it."
    params: ClassVar = DeleteRecordsSpec

    def inject(self, context: FaultContext, fault: PlannedFault[DeleteRecordsSpec]) -> Undo:
        """Delete the records, and record the low watermarks that the brokers returned.

        Raises DeadlineError when the group has no committed offset for 30 s, and HarnessError when no group reads the
        topic.
        """
        admin, topic = context.cluster.admin, context.names.topic(fault.spec.topic)
        group = next((group for group, read in context.names.read if read == topic), None)
        if group is None:
            raise HarnessError(f"delete-records: no group reads the topic {fault.spec.topic}")
        count = context.plan.scenario.workload.partitions
        stable = until(
            f"committed offsets of the group {group}",
            lambda: {tp: offset for tp, (offset, _) in admin.group_offsets(group).items() if tp[0] == topic},
            deadline_s=_OFFSETS_DEADLINE_S,
        )
        partitions = [(topic, p) for p in range(count)]
        starts = admin.offsets(partitions, "earliest", "read_uncommitted")
        ends = admin.offsets(partitions, "latest", "read_uncommitted")
        before = {
            each: {
                "behind": (starts[each] + position) // 2,
                "up-to": position,
                "past": position + (ends[each] - position + 1) // 2,
            }[fault.spec.to]
            for each, position in stable.items()
        }
        low = admin.delete_records(before)
        context.note(
            RecordsDeleted(
                fault=fault.id,
                to=fault.spec.to,
                topic=fault.spec.topic,
                partitions=[
                    DeletedTo(
                        partition=p, position=stable[t, p], start=starts[t, p], low_watermark=mark, end=ends[t, p]
                    )
                    for (t, p), mark in sorted(low.items())
                ],
            )
        )
        return lambda: None

    def hold(self, context: FaultContext, fault: PlannedFault[DeleteRecordsSpec], _undo: Undo) -> None:
        """Return at once, since a deletion is not undone."""

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Return the keys of a random deletion: always `up-to`, which must harm no pipeline.

        None if the group commits no offsets, up to which records could be deleted.
        """
        return None if chance.workload.in_database else {"to": "up-to"}

    def missing(self, fault: PlannedFault[DeleteRecordsSpec], events: Events) -> str | None:
        """Return a message unless records were deleted, for `past` beyond a committed offset."""
        marks = [mark for event in events.of(RecordsDeleted, fault=fault.id) for mark in event.partitions]
        if fault.spec.to == "past":
            if not any(mark.low_watermark > mark.position for mark in marks):
                return "no partition's low watermark passed its committed offset"
        elif not any(mark.low_watermark > mark.start for mark in marks):
            return "no record was deleted"
        return None


FAULT = DeleteRecords()
