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
OFFSETS = "__consumer_offsets"
BROKERS = ("broker1", "broker2", "broker3")


class GoodRun(RunData):
    def __init__(self) -> None:
        super().__init__()
        keys = payload.Keys(1, 10, 0)
        half = RECORDS // PARTITIONS
        for number in range(RECORDS):
            digest = payload.digest(keys.key(number), payload.value(1, number, 100))
            at = {"number": number, "partition": number % PARTITIONS, "offset": number // PARTITIONS}
            self.ledger.append({**at, "digest": digest, "grouping": payload.key_hash(keys.key(number))})
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
            log, name = f"{OFFSETS}/0", f"{PREFIX}-worker-{partition}"
            for number in (1, 2):
                self._log(OFFSETS, 0, [(place := 4 * number + 2 * partition, place, 100 + partition, None)])
                self._log(OFFSETS, 0, [(place + 1, place + 1, 100 + partition, "commit")])
                for step, state in enumerate(("PrepareCommit", "CompleteCommit")):
                    row = {"log": partition, "offset": 2 * number + step, "transactional_id": name, "state": state}
                    producer = {"producer_id": 100 + partition, "producer_epoch": 0, "version": 0}
                    places = [] if step else [f"{PREFIX}-output/{partition}", log]
                    self.states.append({**row, **producer, "partitions": places})
            self.commits += [
                {
                    "topic": f"{PREFIX}-input",
                    "log": 0,
                    "transactional": True,
                    "marker": 4 * number + 2 * partition + 1,
                    "committed_ms": 0,
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
                "replicas": list(BROKERS),
                "isr": list(BROKERS),
            }
            for role, end in (("input", half), ("output", half + 2))
            for p in range(PARTITIONS)
        ]
        internal = {"start": 0, "end": 0, "high_watermark": 0, "leader": "broker1", "compacted": 0}
        names = ((OFFSETS, 0), ("__transaction_state", 0), ("__transaction_state", 1))
        self.internal = [
            {**internal, "topic": topic, "partition": number, "replicas": list(BROKERS), "isr": list(BROKERS)}
            for topic, number in names
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
        for broker in BROKERS:
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
                        "sequence": max(0, first - 1) if producer >= 0 and not control else 0,
                        "transactional": producer >= 0,
                        "control": control,
                        "crc": first * 7 + last,
                        "coordinator_epoch": 0 if control else None,
                        "marker": last + 1 if producer >= 0 and not control else None,
                        "intact": True,
                        "fate": "control" if control else "visible",
                    }
                )

    def _history(self) -> None:
        self.events = [{"at": 1.0, "source": "harness", "event": "history", "schema_version": history.SCHEMA_VERSION}]
        for worker in range(PARTITIONS):
            started = {"at": 1.2, "source": f"worker-{worker}", "incarnation": 1, "event": "started", "pid": 1}
            self.events.append(started)
        half = RECORDS // PARTITIONS
        for worker in range(PARTITIONS):
            self.events.append(
                {
                    "at": 1.5,
                    "n": 1,
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
