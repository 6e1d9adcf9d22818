"""F6: links that work badly: slow, narrow, in small pieces, closing late, reset, timing out, closed after some bytes.

    [[faults]]
    name = "degrade"
    target = "worker-0"              # as of `partition`
    toxic = "latency"                # in Toxiproxy's words; see _TOXICS for what each does here
    at_s = 3

Toxiproxy's own chance (`toxicity`, jitter) is not used: its dice are not in the plan.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

from onceproof.faults._links import LinksSpec, not_broken, strike_links
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.record.history import Events

_TOXICS: Mapping[str, Mapping[str, int]] = {
    "latency": {"latency": 150, "jitter": 0},  # ms
    "bandwidth": {"rate": 200},  # KB/s
    "slicer": {"average_size": 100, "size_variation": 0, "delay": 10},  # bytes, and µs between two pieces
    "slow_close": {"delay": 1000},  # ms
    "reset_peer": {"timeout": 500},  # ms, then a TCP reset
    "timeout": {"timeout": 500},  # ms without a byte, then closed
    "limit_data": {"bytes": 100_000},  # then closed; a new connection may send as many again
}


class DegradeSpec(LinksSpec):
    toxic: Literal["latency", "bandwidth", "slicer", "slow_close", "reset_peer", "timeout", "limit_data"]


class Degrade:
    name: ClassVar = "degrade"
    about: ClassVar = "links that work badly: latency, bandwidth, slicer, slow_close, reset_peer, timeout, limit_data"
    params: ClassVar = DegradeSpec
    needs: ClassVar = frozenset({"links"})

    def inject(self, context: FaultContext, fault: PlannedFault[DegradeSpec]) -> Undo:
        spec = fault.spec
        toxic, attributes = spec.toxic, _TOXICS[spec.toxic]
        loses = toxic in ("reset_peer", "timeout", "limit_data")
        return strike_links(
            context, fault, lambda links: context.cluster.proxies.degrade_links(links, toxic, attributes), close=loses
        )

    def missing(self, fault: PlannedFault[DegradeSpec], events: Events) -> str | None:
        return not_broken(fault, events)


FAULT = Degrade()
