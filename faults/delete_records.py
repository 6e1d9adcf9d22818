"""F7: records of a topic that is read are deleted: behind the group's committed position, up to it, or past it.

    [[faults]]
    name = "delete-records"
    to = "behind"                # or "up-to", or "past"
    topic = "input"              # or the topic between
    at_s = 6

`behind` deletes half of what was committed as consumed, `up-to` all of it, as Kafka Streams does with its repartition
topics: nothing may be lost. `past` deletes half of what lies between the committed position and the end: a consumer
that fetches from its position gets OFFSET_OUT_OF_RANGE and follows auto.offset.reset, and the verdict must be
`reset-skip`.

The stable positions before the delete and the low watermarks that came back go into the history; they bound what
`reset-skip` and `reset-reprocess` may explain.
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

_POSITIONS_DEADLINE_S = 30.0


class DeleteRecordsSpec(FaultSpec):
    to: Literal["behind", "up-to", "past"]
    topic: Annotated[str, Key(pattern="^[a-z][a-z-]*$")] = "input"

    def topics(self, workload: Workload) -> Sequence[str]:
        """Those that a group reads: up to where is a matter of its position."""
        return tuple(filter(None, ("input", workload.intermediate_topic)))


class DeleteRecords:
    name: ClassVar = "delete-records"
    about: ClassVar = "records deleted behind the committed position, up to it, or past it"
    params: ClassVar = DeleteRecordsSpec

    def inject(self, context: FaultContext, fault: PlannedFault[DeleteRecordsSpec]) -> Undo:
        admin, topic = context.cluster.admin, context.names.topic(fault.spec.topic)
        group = next((group for group, read in context.names.read if read == topic), None)
        if group is None:
            raise HarnessError(f"delete-records: nobody reads {fault.spec.topic}")
        count = context.plan.scenario.workload.partitions
        stable = until(
            "committed positions on the input",
            lambda: {tp: offset for tp, (offset, _) in admin.group_offsets(group).items()},
            deadline_s=_POSITIONS_DEADLINE_S,
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
        """Nothing lasts: what is deleted stays so."""

    def draw(self, _chance: Chance) -> Mapping[str, Any]:
        return {"to": "up-to"}

    def missing(self, fault: PlannedFault[DeleteRecordsSpec], events: Events) -> str | None:
        marks = [mark for event in events.of(RecordsDeleted, fault=fault.id) for mark in event.partitions]
        if fault.spec.to == "past":
            if not any(mark.low_watermark > mark.position for mark in marks):
                return "no partition's low watermark passed the committed position"
        elif not any(mark.low_watermark > mark.start for mark in marks):
            return "no record was deleted"
        return None


FAULT = DeleteRecords()
