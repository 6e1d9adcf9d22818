"""A small good run, made by hand: two partitions, four transactions, three replicas. Tests break it.

run = GoodRun()
run.outputs.remove(run.output(7))
run.write(folder)
"""

from copy import deepcopy
from pathlib import Path
from typing import Any

from onceproof.harness.model import plan
from onceproof.harness.model.scenario import parse
from onceproof.harness.record import history, payload
from tests.rundata import Row, RunData

PARTITIONS = 2
RECORDS = 80
PREFIX = "op-test-1"


class GoodRun(RunData):
    def __init__(self) -> None:
        super().__init__()
        keys = payload.Keys(1, 10, 0)
        half = RECORDS // PARTITIONS
        for number in range(RECORDS):
            digest = payload.digest(keys.key(number), payload.value(1, number, 100))
            at = {"number": number, "partition": number % PARTITIONS, "offset": number // PARTITIONS}
            self.ledger.append({**at, "digest": digest})
            # Two transactions a partition: a control record stands between and after them.
            second = at["offset"] >= half // 2
            self.outputs.append(
                {
                    "topic": "output",
                    **at,
                    "offset": at["offset"] + second,
                    "digest": digest,
                    "source_partition": at["partition"],
                    "source_offset": at["offset"],
                    "worker": at["partition"],
                    "incarnation": 1,
                    "transaction": 1 + second,
                }
            )
        self.inputs = deepcopy(self.ledger)
        self.observed = [{**row, "topic": f"{PREFIX}-output", "at": 5.0} for row in self.outputs]
        quarter = half // 2
        for partition in range(PARTITIONS):
            self._log(f"{PREFIX}-input", partition, [(0, half - 1, -1, None)])
            self._log(
                f"{PREFIX}-output",
                partition,
                [
                    (0, quarter - 1, 100 + partition, None),
                    (quarter, quarter, 100 + partition, "commit"),
                    (quarter + 1, half, 100 + partition, None),
                    (half + 1, half + 1, 100 + partition, "commit"),
                ],
            )
            self.commits += [
                {
                    "offset": 4 * number + 2 * partition,
                    "partition": partition,
                    "position": number * quarter,
                    "worker": partition,
                    "incarnation": 1,
                    "transaction": number,
                    "producer_id": 100 + partition,
                    "producer_epoch": 0,
                    "fate": "visible",
                }
                for number in (1, 2)
            ]
        self.partitions = [
            {
                "topic": f"{PREFIX}-{role}",
                "partition": p,
                "start": 0,
                "end": end,
                "high_watermark": end,
                "leader": "broker1",
                "replicas": ["broker1", "broker2", "broker3"],
            }
            for role, end in (("input", half), ("output", half + 2))
            for p in range(PARTITIONS)
        ]
        self.positions = dict.fromkeys(range(PARTITIONS), half)
        self._history()
        self.raw: Row = {"name": "good", "about": "a good run", "workload": {"name": "copy", "partitions": 2}}

    def write(self, folder: Path) -> Path:
        self.plan_json = plan.make(parse(self.raw, where="test"), 1).to_json()
        return super().write(folder)

    def note(self, event: str, source: str = "nemesis", **fields: Any) -> None:
        """Put an event before the last one, which is `quiesced`."""
        self.events.insert(-1, {"at": 50.0, "source": source, "event": event, **fields})

    def _log(self, topic: str, partition: int, spans: list[tuple[int, int, int, str | None]]) -> None:
        for broker in ("broker1", "broker2", "broker3"):
            for first, last, producer, control in spans:
                self.batches.append(
                    {
                        "topic": topic,
                        "partition": partition,
                        "broker": broker,
                        "first": first,
                        "last": last,
                        "records": last - first + 1,
                        "producer_id": producer,
                        "producer_epoch": 0,
                        "sequence": 0,
                        "transactional": producer >= 0,
                        "control": control,
                        "crc": first * 7 + last,
                        "coordinator_epoch": 0 if control else None,
                        "fate": "control" if control else "visible",
                    }
                )

    def _history(self) -> None:
        self.events = [{"at": 1.0, "source": "harness", "event": "history", "schema_version": history.SCHEMA_VERSION}]
        half = RECORDS // PARTITIONS
        for worker in range(PARTITIONS):
            self.events.append(
                {
                    "at": 1.5,
                    "t": 1.5,
                    "source": f"worker-{worker}",
                    "incarnation": 1,
                    "event": "assigned",
                    "partitions": [worker],
                }
            )
        for transaction, span, place in ((1, [0, half // 2], 0), (2, [half // 2, half], half // 2 + 1)):
            for worker in range(PARTITIONS):
                common = {
                    "source": f"worker-{worker}",
                    "incarnation": 1,
                    "transaction": transaction,
                    "t": 2.0,
                    "sources": {str(worker): span},
                    "records": half // 2,
                }
                outputs = {f"{PREFIX}-output/{worker}": [half // 2, place, place + half // 2 - 1]}
                self.events.append({"at": 2.0, "event": "begin", **common})
                self.events.append({"at": 2.1, "event": "invoke", "outputs": outputs, **common})
                self.events.append({"at": 2.2, "event": "outcome", "type": "ok", **common})
        self.events.append({"at": 60.0, "source": "nemesis", "event": "quiesced", "lso_behind": []})
