"""F14: one single request is held on its way, and delivered later, when its client has long sent it again or given up.

    [[faults]]
    name = "hold-request"
    target = "worker-0"              # the requests of this worker; or a node's, to `peer` alone when that is given
    api = "EndTxn"
    requests = 1                     # the first; 0: every one, so that the client cannot get through by asking again
    when = { worker = 0, phase = "before-commit", count = 12 }
    until = { worker = 0, phase = "produced", count = 13 }      # else it is delivered after lasts_s

TCP gives no help here: the network may hold a segment longer than the client's request time-out, the client asks again
on another connection, and the broker cannot tell which of the two was sent first. What a protocol without epochs in
every request does then is KAFKA-17754, KAFKA-14561 and KAFKA-19446.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import ClassVar

from onceproof.faults._requests import RequestSpec, await_one, links, make_rule, wire
from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import DeadlineError
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.spec import When
from onceproof.harness.record.events import AtPhase, RequestAnswered, RequestDelivered, RequestMatched
from onceproof.harness.record.history import Events

_UNTIL = "/until"
_PHASE_DEADLINE_S = 90.0
_ANSWER_DEADLINE_S = 5.0
# What a broker does with a late request it does within this, its markers included.
_SETTLES_S = 1.0


class HoldRequestSpec(RequestSpec):
    until: When | None = None

    @property
    def stops(self) -> Mapping[str, When]:
        return {**super().stops, **({_UNTIL: self.until} if self.until else {})}


class HoldRequest:
    name: ClassVar = "hold-request"
    about: ClassVar = "a request is held past its client's patience, and delivered later"
    params: ClassVar = HoldRequestSpec
    needs: ClassVar = frozenset({"links"})

    def wired(self, spec: HoldRequestSpec) -> list[str]:
        return links(spec)

    def inject(self, context: FaultContext, fault: PlannedFault[HoldRequestSpec]) -> Undo:
        make_rule(context, fault, "hold")
        return lambda: self._release(context, fault)

    def hold(self, context: FaultContext, fault: PlannedFault[HoldRequestSpec], _undo: Undo) -> None:
        spec = fault.spec
        await_one(context, fault, RequestMatched)
        if spec.until is None:
            context.aborted.wait(spec.lasts_s)
            return
        context.wait(
            f"worker-{spec.until.worker} at {spec.until.phase} of its transaction {spec.until.count}",
            AtPhase,
            lambda event: event.fault == fault.id + _UNTIL,
            deadline_s=_PHASE_DEADLINE_S,
        )

    def missing(self, fault: PlannedFault[HoldRequestSpec], events: Events) -> str | None:
        """It was held until the moment that was named, and then delivered."""
        spec = fault.spec
        matched, delivered = events.of(RequestMatched, fault=fault.id), events.of(RequestDelivered, fault=fault.id)
        if not matched:
            return f"no {spec.api} of {spec.target} was held"
        if len(delivered) < len(matched):
            return f"{len(matched)} requests were held, {len(delivered)} delivered"
        reached = [each.at for each in events.of(AtPhase, fault=fault.id + _UNTIL)]
        if spec.until is not None and not (reached and matched[0].at < reached[0] < delivered[0].at):
            return f"it was not held until worker-{spec.until.worker} was at {spec.until.phase}"
        return None

    @staticmethod
    def _release(context: FaultContext, fault: PlannedFault[HoldRequestSpec]) -> None:
        """Deliver, and let the worker that waits for it go on when the broker has done what it does."""
        spec = fault.spec
        wire(context).release(fault.id)
        held = len(context.history.events().of(RequestMatched, fault=fault.id))
        with suppress(DeadlineError):  # then it is not in the history, and is missed there
            until(
                "an answer to each held request",
                lambda: len(context.history.events().of(RequestAnswered, fault=fault.id)) >= held,
                deadline_s=_ANSWER_DEADLINE_S,
            )
        context.aborted.wait(_SETTLES_S)
        if spec.until is not None:
            context.workers.go(spec.until.worker, fault.id + _UNTIL)


FAULT = HoldRequest()
