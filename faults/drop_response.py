"""F14: a request takes effect and its response never comes: the connection ends in its place.

    [[faults]]
    name = "drop-response"
    target = "worker-0"
    api = "EndTxn"                   # so the worker cannot know whether its transaction was committed
    when = { worker = 0, phase = "before-commit", count = 12 }
"""

from collections.abc import Sequence
from typing import ClassVar

from faults._requests import RequestSpec, await_one, links, make_rule, of, wire
from harness.field import Field
from harness.plan import PlannedFault
from harness.protocols import Event, Undo
from harness.scenario import FaultSpec


class DropResponse:
    name: ClassVar = "drop-response"
    about: ClassVar = "a request takes effect, its response is lost with its connection"
    params: ClassVar = RequestSpec

    def wired(self, spec: FaultSpec) -> list[str]:
        assert isinstance(spec, RequestSpec)
        return links(spec)

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        make_rule(field, fault, "drop-response")
        return lambda: wire(field).release(fault.id)

    def hold(self, field: Field, fault: PlannedFault) -> None:
        await_one(field, fault, "request-dropped")
        assert isinstance(fault.spec, RequestSpec)
        if fault.spec.requests != 1:
            field.aborted.wait(fault.spec.lasts_s)

    def missing(self, fault: PlannedFault, events: Sequence[Event]) -> str | None:
        assert isinstance(fault.spec, RequestSpec)
        if of(fault, "request-dropped", events):
            return None
        return f"no response to a {fault.spec.api} of {fault.spec.target} was dropped"


FAULT = DropResponse()
