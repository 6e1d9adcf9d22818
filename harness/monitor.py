"""Looks at the cluster once a second while a run goes on, for the person who watches and for the report.

    {"event": "sample", "input_end": 41000, "committed": 40500, "output_hw": 40700, "output_lso": 40620}

Sums over partitions. While a fault keeps the cluster from answering there is no sample; the gap shows it.
"""

import threading
import time

from harness.admin import AdminError
from harness.field import Field
from harness.history import Event
from harness.progress import Progress

_EVERY_S = 1.0


class Monitor:
    def __init__(self, field: Field, progress: Progress) -> None:
        self._field, self._progress = field, progress
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="monitor", daemon=True)
        field.history.listen(self._tell)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Twice is harmless."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(15)

    def _run(self) -> None:
        before, since = 0, time.monotonic()
        while not self._over.wait(_EVERY_S):
            try:
                sample = self._sample()
            except AdminError:
                continue
            now = time.monotonic()
            rate = max(0, sample["committed"] - before) / (now - since)
            before, since = sample["committed"], now
            self._field.history.append("monitor", "sample", **sample)
            self._progress.live(
                f"{rate:,.0f} records/s  lag {sample['input_end'] - sample['committed']:,}  "
                f"LSO {sample['output_lso']:,} of HW {sample['output_hw']:,}"
            )

    def _sample(self) -> dict[str, int]:
        admin, names = self._field.cluster.admin, self._field.names
        count = self._field.plan.scenario.workload.partitions
        inputs = [(names.input, partition) for partition in range(count)]
        outputs = [(names.topic(role), partition) for role in names.outputs for partition in range(count)]
        return {
            "input_end": sum(admin.offsets(inputs, "latest", "read_uncommitted").values()),
            "committed": sum(offset for offset, _ in admin.group_offsets(names.group).values()),
            "output_hw": sum(admin.offsets(outputs, "latest", "read_uncommitted").values()),
            "output_lso": sum(admin.offsets(outputs, "latest", "read_committed").values()),
        }

    def _tell(self, event: Event) -> None:
        kind = event["event"]
        if kind == "fault-target":
            where = event.get("node") or f"{event['role']} (incarnation {event.get('incarnation')})"
            self._progress.say(f"fault {event['fault']}: {event['role']} is {where}")
        elif kind == "records-deleted":
            self._progress.say(f"fault {event['fault']}: records deleted {event['to']} the position")
        elif kind == "fault-healed":
            self._progress.say(f"fault {event['fault']}: healed")
        elif kind in ("fault-missed", "fault-failed", "stalled"):
            self._progress.say(f"{kind}: {event.get('fault', '')} {event['reason']}")
        elif kind == "died":
            who = f"{event['source']} incarnation {event['incarnation']}"
            self._progress.say(f"{who}: {event['call']}: {event['code']}")
