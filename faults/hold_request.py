"""Hold a request on its way to a broker and deliver it late, after its client has retried it or given it up.

    [[faults]]
    name = "hold-request"
    target = "worker-0"              # a worker's requests, or a broker's; with `peer` only those to that broker
    api = "EndTxn"
    requests = 1                     # default: the first; 0: every one, so that no retry gets through either
    client = ""                      # default: any; or how the client id begins, such as "worker-0-"
    when = { worker = 0, phase = "before-commit", count = 12 }
    until = { worker = 0, phase = "produced", count = 13 }      # default: the request is delivered after lasts_s

Without `until`, the request is delivered `lasts_s` after it came, which is late only if its client's request time-out
is shorter than that. With `until`, it is delivered when that worker reaches that phase of that transaction, and
`lasts_s` has no effect; the worker waits there until the broker has answered the request.

TCP does not prevent this: a network may hold a segment for longer than the client's request time-out, the client then
retries on another connection, and the broker cannot tell which of the two requests was sent first. KAFKA-17754,
KAFKA-14561 and KAFKA-19446 describe the consequences in a protocol whose requests do not all carry an epoch.
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
# LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
_MOVED = frozenset({5, 6, 14, 15, 16})
# A broker has processed a late request within this time, including the markers that it writes.
_SETTLES_S = 1.0


class HoldRequestSpec(RequestSpec):
    """The keys of `hold-request`, in addition to those of `RequestSpec` and `LinksSpec`.

    - `until`: the worker, phase and transaction at which the held requests are delivered (default: none; they are
      delivered after `lasts_s`).
    """

    until: When | None = None

    @property
    def stops(self) -> Mapping[str, When]:
        """Return the phases at which a worker waits: at `when`, and at `until`."""
        return {**super().stops, **({_UNTIL: self.until} if self.until else {})}


class HoldRequest:
    """Requests are held and delivered late."""

    name: ClassVar = "hold-request"
    about: ClassVar = (
        "Holds a request, and delivers it after a time or at a phase, when its client may have given it up."
    )
    params: ClassVar = HoldRequestSpec
    needs: ClassVar = frozenset({"links"})

    def wired(self, spec: HoldRequestSpec) -> list[str]:
        """Return the links that must lead through the request proxy."""
        return links(spec)

    def inject(self, context: FaultContext, fault: PlannedFault[HoldRequestSpec]) -> Undo:
        """Give the request proxy its rule; the returned function delivers the held requests."""
        make_rule(context, fault, "hold")
        return lambda: self._release(context, fault)

    def hold(self, context: FaultContext, fault: PlannedFault[HoldRequestSpec], _undo: Undo) -> None:
        """Wait until a request is held, and then for `lasts_s` or until the phase of `until`.

        Raises DeadlineError when no request is held within 60 s, or the phase is not reached within 90 s.
        """
        spec = fault.spec
        await_one(context, fault, RequestMatched)
        if spec.until is None:
            context.aborted.wait(spec.lasts_s)
            return
        context.wait(
            f"worker-{spec.until.worker} to reach {spec.until.phase} of its transaction {spec.until.count}",
            AtPhase,
            lambda event: event.fault == fault.id + _UNTIL,
            deadline_s=_PHASE_DEADLINE_S,
        )

    def missing(self, fault: PlannedFault[HoldRequestSpec], events: Events) -> str | None:
        """Return a message unless requests were held until the given moment, and then delivered to the right brokers.

        A broker that no longer leads the partition, or no longer coordinates, refuses any request, be it late or not.
        """
        spec = fault.spec
        matched, delivered = events.of(RequestMatched, fault=fault.id), events.of(RequestDelivered, fault=fault.id)
        if not matched:
            return f"no {spec.api} request of {spec.target} was held"
        if len(delivered) < len(matched):
            return f"{len(matched)} requests were held, but only {len(delivered)} delivered"
        reached = [each.at for each in events.of(AtPhase, fault=fault.id + _UNTIL)]
        answered = events.of(RequestAnswered, fault=fault.id)
        if answered and all(_MOVED.intersection(each.errors) for each in answered):
            return f"the late {spec.api} request had no effect, since another broker leads or coordinates by now"
        if spec.until is not None and not (reached and matched[0].at < reached[0] < delivered[0].at):
            return f"the request was not held until worker-{spec.until.worker} reached {spec.until.phase}"
        return None

    @staticmethod
    def _release(context: FaultContext, fault: PlannedFault[HoldRequestSpec]) -> None:
        """Deliver the requests, wait for the answers, and let the worker that waits at `until` go on."""
        spec = fault.spec
        wire(context).release(fault.id)
        held = len(context.history.events().of(RequestMatched, fault=fault.id))
        with suppress(DeadlineError):  # no response is no failure of the fault: `missing` checks the deliveries
            until(
                "a response to each held request",
                lambda: len(context.history.events().of(RequestAnswered, fault=fault.id)) >= held,
                deadline_s=_ANSWER_DEADLINE_S,
            )
        context.aborted.wait(_SETTLES_S)
        if spec.until is not None:
            context.workers.go(spec.until.worker, fault.id + _UNTIL)


FAULT = HoldRequest()
