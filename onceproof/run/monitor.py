"""Sample the cluster once a second during a run, for the progress display and for the report.

    {"event": "sample", "input_end": 41000, "committed": 40500, "output_hw": 40700, "output_lso": 40620, …}
    {"event": "replicas", "topic": "output", "partition": 3, "leader": 2, "isr": [2, 3]}

Offsets are sums over partitions. The leaders and in-sync replicas of the run's topics, and of the internal topics whose
leaders are the coordinators, are told when they change. There is no sample while a fault keeps the cluster from
answering.
"""

import threading
import time

from onceproof.harness.base.progress import Progress
from onceproof.harness.cluster.admin import AdminError
from onceproof.harness.cluster.described import PartitionState
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
    ReplicasChanged,
    Stalled,
)

_EVERY_S = 1.0
_INTERNAL = ("__transaction_state", "__consumer_offsets")


class Monitor:
    """A thread that samples the cluster, and a listener that shows the events of faults."""

    def __init__(self, context: FaultContext, progress: Progress) -> None:
        self._context, self._progress = context, progress
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="monitor", daemon=True)
        self._replicas: dict[tuple[str, int], PartitionState] = {}
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
                self._tell_of_replicas()
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
        ends = admin.offsets(outputs, "latest", "read_uncommitted")
        stable = admin.offsets(outputs, "latest", "read_committed")
        roles = {topic: role for role, topic in names.topics.items()}
        behind = {at: max(0, end - stable.get(at, end)) for at, end in ends.items()}
        return ClusterSample(
            input_end=sum(admin.offsets(inputs, "latest", "read_uncommitted").values()),
            committed=sum(offset for offset, _ in admin.group_offsets(names.group).values()),
            output_hw=sum(ends.values()),
            output_lso=sum(stable.values()),
            behind={f"{roles[topic]}/{partition}": lag for (topic, partition), lag in behind.items() if lag},
        )

    def _tell_of_replicas(self) -> None:
        """Tell of each partition that has another leader or other in-sync replicas than before."""
        admin, names = self._context.cluster.admin, self._context.names
        for role in ("input", *names.outputs, *_INTERNAL):
            topic = role if role in _INTERNAL else names.topic(role)
            for partition, state in admin.partitions(topic).items():
                before = self._replicas.get((role, partition))
                self._replicas[role, partition] = state
                if before is None or (before.leader, before.isr) != (state.leader, state.isr):
                    told = ReplicasChanged(topic=role, partition=partition, leader=state.leader, isr=list(state.isr))
                    self._context.history.append("monitor", told)

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
