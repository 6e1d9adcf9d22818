"""Fill the disk of a broker, and make room again after `lasts_s`.

    [cluster]
    disk_mb = 300                    # each broker has a file system of this size

    [[faults]]
    name = "fill-disk"
    target = "leader:output/0"
    at_s = 4
    lasts_s = 4

A file takes all space that is left on the broker's file system. Its next write to the log fails with "No space left on
device"; since that is its only log directory, it shuts down (KIP-112). When the fault ends, the file is removed and the
broker is started.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from onceproof.faults._node import BrokerSpec, draw_broker, make_end, not_ended
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.record.events import Noted
from onceproof.harness.record.history import Events


class FillDisk:
    """A broker has no space left on its disk until the fault ends."""

    name: ClassVar = "fill-disk"
    about: ClassVar = "Fills a broker's disk, so that it shuts down, and makes room after lasts_s."
    params: ClassVar = BrokerSpec
    needs: ClassVar = frozenset({"nodes", "log-access"})
    small_disk: ClassVar = True

    def inject(self, context: FaultContext, fault: PlannedFault[BrokerSpec]) -> Undo:
        """Fill the disk and wait until the broker has ended; the returned function undoes both.

        Raises DeadlineError when no node has the role for 20 s, or the broker still runs after 30 s.
        """
        cluster = context.cluster

        def fill(broker: str) -> None:
            context.note(Noted(fault=fault.id, what="filled", data={"bytes": cluster.fill_disk(broker)}))

        node = make_end(context, fault, fill)

        def undo() -> None:
            cluster.make_room()
            cluster.start(node)

        return undo

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Return keys that fill a broker's disk for 3 to 8 seconds.

        None if brokers have no disks of their own, or if the period already affects a node.
        """
        return None if chance.scenario.cluster.disk_mb is None else draw_broker(chance)

    def missing(self, fault: PlannedFault[BrokerSpec], events: Events) -> str | None:
        """Return a message unless the broker ended by itself."""
        return not_ended(fault, events)


FAULT = FillDisk()
