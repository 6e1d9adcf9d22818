"""Let a request take effect and drop its response, by closing the connection instead.

    [[faults]]
    name = "drop-response"
    target = "worker-0"              # a worker's requests, or a broker's; with `peer` only those to that broker
    api = "EndTxn"
    requests = 1                     # default: the first; 0: every one until the fault is healed
    client = ""                      # default: any; or how the client id begins, such as "worker-0-"
    when = { worker = 0, phase = "before-commit", count = 12 }

With `EndTxn`, the worker cannot know whether its transaction was committed. With `requests = 1` the fault ends with the
first response that is dropped; otherwise it lasts for `lasts_s` after that.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from onceproof.faults._requests import RequestSpec, await_one, links, make_rule, wire
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.record.events import RequestDropped
from onceproof.harness.record.history import Events


class DropResponse:
    """The responses to some requests are dropped with their connections."""

    name: ClassVar = "drop-response"
    about: ClassVar = "Lets a request take effect and drops its response together with the connection."
    params: ClassVar = RequestSpec
    needs: ClassVar = frozenset({"links"})

    def wired(self, spec: RequestSpec) -> list[str]:
        """Return the links that must lead through the request proxy."""
        return links(spec)

    def inject(self, context: FaultContext, fault: PlannedFault[RequestSpec]) -> Undo:
        """Give the request proxy its rule; the returned function ends the rule."""
        make_rule(context, fault, "drop-response")
        return lambda: wire(context).release(fault.id)

    def hold(self, context: FaultContext, fault: PlannedFault[RequestSpec], _undo: Undo) -> None:
        """Wait until a response was dropped, and for `lasts_s` more if there can be several.

        Raises DeadlineError when no response is dropped within 60 s.
        """
        await_one(context, fault, RequestDropped)
        if fault.spec.requests != 1:
            context.aborted.wait(fault.spec.lasts_s)

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Return keys that drop the answer to a worker's commit.

        None if the pipeline has no transactions, or if every worker is already hit.
        """
        wiring = chance.workload.wiring
        worker = chance.worker() if chance.workload.claim.transactional and wiring.transactional else None
        if worker is None:
            return None
        when = chance.at(worker, "before-commit")
        return {"target": f"worker-{worker}", "api": "EndTxn", "when": when}

    def missing(self, fault: PlannedFault[RequestSpec], events: Events) -> str | None:
        """Return a message unless a response was dropped."""
        if events.first(RequestDropped, fault=fault.id):
            return None
        return f"no response to a {fault.spec.api} request of {fault.spec.target} was dropped"


FAULT = DropResponse()
