"""F7: records of the input topic are deleted, behind the group's committed position or past it.

    [[faults]]
    name = "delete-records"
    to = "behind"                # or "past"
    at_s = 6

`behind` deletes what was committed as consumed, as Kafka Streams does with its repartition topics: nothing may be
lost. `past` deletes half of what lies between the committed position and the end: a consumer that fetches from its
position gets OFFSET_OUT_OF_RANGE and follows auto.offset.reset, and the verdict must be `reset-skip`.

The stable positions before the delete and the low watermarks that came back go into the history; they bound what
`reset-skip` and `reset-reprocess` may explain.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from harness.draw import Chance
from harness.field import Field
from harness.plan import PlannedFault
from harness.protocols import Event, Undo
from harness.scenario import FaultSpec
from harness.wait import until

_POSITIONS_DEADLINE_S = 30.0


class DeleteRecordsSpec(FaultSpec):
    to: Literal["behind", "past"]


class DeleteRecords:
    name: ClassVar = "delete-records"
    about: ClassVar = "records of the input deleted behind the committed position, or past it"
    params: ClassVar = DeleteRecordsSpec

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        assert isinstance(fault.spec, DeleteRecordsSpec)
        admin, topic = field.cluster.admin, field.names.input
        count = field.plan.scenario.workload.partitions
        stable = until(
            "committed positions on the input",
            lambda: {tp: offset for tp, (offset, _) in admin.group_offsets(field.names.group).items()},
            deadline_s=_POSITIONS_DEADLINE_S,
        )
        ends = admin.offsets([(topic, p) for p in range(count)], "latest", "read_uncommitted")
        before = {
            tp: offset if fault.spec.to == "behind" else offset + (ends[tp] - offset + 1) // 2
            for tp, offset in stable.items()
        }
        low = admin.delete_records(before)
        field.note(
            "records-deleted",
            fault=fault.id,
            to=fault.spec.to,
            partitions=[
                {"partition": p, "position": stable[t, p], "low_watermark": mark, "end": ends[t, p]}
                for (t, p), mark in sorted(low.items())
            ],
        )
        return lambda: None

    def hold(self, field: Field, fault: PlannedFault) -> None:
        """Nothing lasts: what is deleted stays so."""

    def draw(self, _chance: Chance) -> Mapping[str, Any]:
        return {"to": "behind"}

    def missing(self, fault: PlannedFault, events: Sequence[Event]) -> str | None:
        assert isinstance(fault.spec, DeleteRecordsSpec)
        marks = [
            mark for event in events if event["event"] == "records-deleted" and event["fault"] == fault.id
            for mark in event["partitions"]
        ]  # fmt: skip
        if fault.spec.to == "past":
            if not any(mark["low_watermark"] > mark["position"] for mark in marks):
                return "no partition's low watermark passed the committed position"
        elif not any(mark["low_watermark"] > 0 for mark in marks):
            return "no record was deleted"
        return None


FAULT = DeleteRecords()

