"""Take a broker's log directory away, and give it back after `lasts_s`.

    [[faults]]
    name = "log-directory"
    target = "leader:output/0"
    at_s = 4
    lasts_s = 4

The directory is renamed under the running broker, as if its mount had gone. Files that are open can still be written,
but the broker cannot make new ones: at its next checkpoint, within five seconds, it finds that its only log directory
has failed, and shuts down (KIP-112). When the fault ends, the directory is there again and the broker is started.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from onceproof.faults._node import BrokerSpec, draw_broker, make_end, not_ended
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.record.history import Events


class LogDirectory:
    """A broker loses its log directory and gets it back."""

    name: ClassVar = "log-directory"
    about: ClassVar = "Takes a broker's log directory away, so that it shuts down, and gives it back after lasts_s."
    params: ClassVar = BrokerSpec
    needs: ClassVar = frozenset({"nodes", "log-access"})

    def inject(self, context: FaultContext, fault: PlannedFault[BrokerSpec]) -> Undo:
        """Take the directory away and wait until the broker has ended; the returned function undoes both.

        Raises DeadlineError when no node has the role for 20 s, or the broker still runs after 30 s.
        """
        cluster = context.cluster
        node = make_end(context, fault, cluster.take_log_directory)

        def undo() -> None:
            cluster.give_log_directories_back()
            cluster.start(node)

        return undo

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Return keys that take a broker's directory for 3 to 8 seconds; None if the period already affects a node."""
        return draw_broker(chance)

    def missing(self, fault: PlannedFault[BrokerSpec], events: Events) -> str | None:
        """Return a message unless the broker ended by itself."""
        return not_ended(fault, events)


FAULT = LogDirectory()
