"""F14: a request takes effect and its response never comes: the connection ends in its place.

[[faults]]
name = "drop-response"
target = "worker-0"
api = "EndTxn"                   # so the worker cannot know whether its transaction was committed
when = { worker = 0, phase = "before-commit", count = 12 }
"""

from typing import ClassVar

from onceproof.faults._requests import RequestSpec, await_one, links, make_rule, wire
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.record.events import RequestDropped
from onceproof.harness.record.history import Events


class DropResponse:
    name: ClassVar = "drop-response"
    about: ClassVar = "a request takes effect, its response is lost with its connection"
    params: ClassVar = RequestSpec
    needs: ClassVar = frozenset({"links"})

    def wired(self, spec: RequestSpec) -> list[str]:
        return links(spec)

    def inject(self, context: FaultContext, fault: PlannedFault[RequestSpec]) -> Undo:
        make_rule(context, fault, "drop-response")
        return lambda: wire(context).release(fault.id)

    def hold(self, context: FaultContext, fault: PlannedFault[RequestSpec], _undo: Undo) -> None:
        await_one(context, fault, RequestDropped)
        if fault.spec.requests != 1:
            context.aborted.wait(fault.spec.lasts_s)

    def missing(self, fault: PlannedFault[RequestSpec], events: Events) -> str | None:
        if events.first(RequestDropped, fault=fault.id):
            return None
        return f"no response to a {fault.spec.api} of {fault.spec.target} was dropped"


FAULT = DropResponse()
