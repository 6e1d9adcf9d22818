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

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import ClassVar

from faults._requests import RequestSpec, await_one, links, make_rule, of, wire
from harness.errors import DeadlineError
from harness.field import Field
from harness.plan import PlannedFault
from harness.protocols import Event, Undo
from harness.scenario import FaultSpec, When
from harness.wait import until

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

    def wired(self, spec: FaultSpec) -> list[str]:
        assert isinstance(spec, HoldRequestSpec)
        return links(spec)

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        make_rule(field, fault, "hold")
        return lambda: self._release(field, fault)

    def hold(self, field: Field, fault: PlannedFault) -> None:
        spec = fault.spec
        assert isinstance(spec, HoldRequestSpec)
        await_one(field, fault, "request-matched")
        if spec.until is None:
            field.aborted.wait(spec.lasts_s)
            return
        field.wait(f"worker-{spec.until.worker} at {spec.until.phase} of its transaction {spec.until.count}",
                   lambda e: e["event"] == "at-phase" and e["fault"] == fault.id + _UNTIL,
                   deadline_s=_PHASE_DEADLINE_S)  # fmt: skip

    def missing(self, fault: PlannedFault, events: Sequence[Event]) -> str | None:
        """It was held until the moment that was named, and then delivered."""
        spec = fault.spec
        assert isinstance(spec, HoldRequestSpec)
        matched, delivered = of(fault, "request-matched", events), of(fault, "request-delivered", events)
        if not matched:
            return f"no {spec.api} of {spec.target} was held"
        if len(delivered) < len(matched):
            return f"{len(matched)} requests were held, {len(delivered)} delivered"
        reached = [e["at"] for e in events if e["event"] == "at-phase" and e["fault"] == fault.id + _UNTIL]
        if spec.until is not None and not (reached and matched[0]["at"] < reached[0] < delivered[0]["at"]):
            return f"it was not held until worker-{spec.until.worker} was at {spec.until.phase}"
        return None

    @staticmethod
    def _release(field: Field, fault: PlannedFault) -> None:
        """Deliver, and let the worker that waits for it go on when the broker has done what it does."""
        spec = fault.spec
        assert isinstance(spec, HoldRequestSpec)
        wire(field).release(fault.id)
        held = len(of(fault, "request-matched", field.history.events()))
        with suppress(DeadlineError):  # then it is not in the history, and is missed there
            until(
                "an answer to each held request",
                lambda: len(of(fault, "request-answered", field.history.events())) >= held,
                deadline_s=_ANSWER_DEADLINE_S,
            )
        field.aborted.wait(_SETTLES_S)
        if spec.until is not None:
            field.crew.go(spec.until.worker, fault.id + _UNTIL)


FAULT = HoldRequest()
