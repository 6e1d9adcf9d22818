"""Make links slow, narrow or unreliable with one of Toxiproxy's toxics.

    [[faults]]
    name = "degrade"
    target = "worker-0"              # also: links, direction, peer, as for `partition`
    toxic = "latency"
    at_s = 3

`toxic` is one of these, and acts on both directions of each link:

    latency       delays every byte by 150 ms
    bandwidth     limits the rate to 200 KB/s
    slicer        cuts the stream into pieces of 100 bytes, with 10 µs between two pieces
    slow_close    closes connections 1 s late
    reset_peer    resets connections (TCP RST) after 500 ms
    timeout       stops all data, and closes connections after 500 ms
    limit_data    closes a connection after 100,000 bytes; a new connection may carry as many again

Toxiproxy's own randomness (`toxicity`, jitter) is not used, since it would not follow from the plan.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from onceproof.faults._links import LinksSpec, not_broken, strike_links
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.record.history import Events

_TOXICS: Mapping[str, Mapping[str, int]] = {
    "latency": {"latency": 150, "jitter": 0},  # ms
    "bandwidth": {"rate": 200},  # KB/s
    "slicer": {"average_size": 100, "size_variation": 0, "delay": 10},  # bytes; µs between two pieces
    "slow_close": {"delay": 1000},  # ms
    "reset_peer": {"timeout": 500},  # ms, then a TCP reset
    "timeout": {"timeout": 500},  # ms in which no data passes, then closed
    "limit_data": {"bytes": 100_000},  # bytes, then closed; a new connection may carry as many again
}
_SLOW = ("latency", "bandwidth", "slicer", "slow_close")  # these lose no data


class DegradeSpec(LinksSpec):
    """The keys of `degrade`, in addition to those of `LinksSpec`.

    - `toxic`: how the links are degraded. The values are those of Toxiproxy; what each of them does is listed above.
    """

    toxic: Literal["latency", "bandwidth", "slicer", "slow_close", "reset_peer", "timeout", "limit_data"]


class Degrade:
    """Links are degraded by a toxic."""

    name: ClassVar = "degrade"
    about: ClassVar = "Degrades links: latency, bandwidth, slicer, slow_close, reset_peer, timeout or limit_data."
    params: ClassVar = DegradeSpec
    needs: ClassVar = frozenset({"links"})

    def inject(self, context: FaultContext, fault: PlannedFault[DegradeSpec]) -> Undo:
        """Add the toxic to both directions of the links.

        Healing closes the open connections for the toxics that lose data (`reset_peer`, `timeout`, `limit_data`).
        """
        spec = fault.spec
        toxic, attributes = spec.toxic, _TOXICS[spec.toxic]
        loses_data = toxic in ("reset_peer", "timeout", "limit_data")
        return strike_links(
            context,
            fault,
            lambda links: context.cluster.proxies.degrade_links(links, toxic, attributes, fault=fault.id),
            close=loses_data,
        )

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Return keys that slow a worker's lane or the links of a node down for 3 to 8 seconds.

        None if the period already affects every worker, or a node.
        """
        worker = chance.worker() if chance.dice.random() < 0.5 else None
        target = chance.node() if worker is None else f"worker-{worker}"
        if target is None:
            return None
        return {"target": target, "toxic": chance.dice.choice(_SLOW), "lasts_s": chance.seconds(3, 8)}

    def missing(self, fault: PlannedFault[DegradeSpec], events: Events) -> str | None:
        """Return a message unless Toxiproxy reported all links as broken."""
        return not_broken(fault, events)


FAULT = Degrade()
