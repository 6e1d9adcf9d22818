"""Sample the cluster once a second during a run, for the progress display and for the report.

    {"event": "sample", "input_end": 41000, "committed": 40500, "output_hw": 40700, "output_lso": 40620}

All values are sums over partitions. There is no sample while a fault keeps the cluster from answering.
"""

import threading
import time

from onceproof.harness.base.progress import Progress
from onceproof.harness.cluster.admin import AdminError
from onceproof.harness.context.context import FaultContext
from onceproof.harness.record.events import (
    ClusterSample,
    Died,
    Event,
    FaultHealed,
    FaultNotDone,
    FaultTarget,
    NodeExited,
    RecordsDeleted,
    Stalled,
)

_EVERY_S = 1.0


class Monitor:
    """A thread that samples the cluster, and a listener that shows the events of faults."""

    def __init__(self, context: FaultContext, progress: Progress) -> None:
        self._context, self._progress = context, progress
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="monitor", daemon=True)
        context.history.listen(self._show)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread. It may be called more than once."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(15)

    def _run(self) -> None:
        before, since = 0, time.monotonic()
        while not self._stopped.wait(_EVERY_S):
            try:
                sample = self._sample()
            except AdminError:
                continue
            now = time.monotonic()
            rate = max(0, sample.committed - before) / (now - since)
            before, since = sample.committed, now
            self._context.history.append("monitor", sample)
            self._progress.live(
                f"{rate:,.0f} records/s  lag {sample.input_end - sample.committed:,}  "
                f"LSO {sample.output_lso:,} of HW {sample.output_hw:,}"
            )

    def _sample(self) -> ClusterSample:
        admin, names = self._context.cluster.admin, self._context.names
        count = self._context.plan.scenario.workload.partitions
        inputs = [(names.input, partition) for partition in range(count)]
        outputs = [(names.topic(role), partition) for role in names.outputs for partition in range(count)]
        return ClusterSample(
            input_end=sum(admin.offsets(inputs, "latest", "read_uncommitted").values()),
            committed=sum(offset for offset, _ in admin.group_offsets(names.group).values()),
            output_hw=sum(admin.offsets(outputs, "latest", "read_uncommitted").values()),
            output_lso=sum(admin.offsets(outputs, "latest", "read_committed").values()),
        )

    def _show(self, event: Event) -> None:
        text = self._text(event)
        if text:
            self._progress.say(text)

    @staticmethod
    def _text(event: Event) -> str:
        """Return the line for an event on the progress display; empty for events that are not shown."""
        match event:
            case FaultTarget():
                hit = event.node or f"incarnation {event.incarnation}"
                return f"fault {event.fault}: its target {event.role} is {hit}"
            case RecordsDeleted():
                return f"fault {event.fault}: deleted records of {event.topic} ({event.to} the committed offset)"
            case FaultHealed():
                return f"fault {event.fault}: healed"
            case FaultNotDone():
                return f"{event.kind}: {event.fault}: {event.reason}"
            case NodeExited():
                return f"{event.node} exited with status {event.code}, and no fault caused it"
            case Stalled():
                return f"stalled: {event.reason}"
            case Died():
                return f"{event.source} incarnation {event.incarnation}: {event}"
        return ""
