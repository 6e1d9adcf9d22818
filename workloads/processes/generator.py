"""The generator: inputs at a steady rate, and a ledger of what was sent and what the brokers acknowledged.

It starts when the harness says `begin`, sends at least `records`, and goes on at its rate until the harness says `stop`
(the last fault is healed); then it sends a tail, so that no fault meets an idle pipeline; `records_max` bounds it. Each
ledger file is written whole and then renamed, so a generator that is killed leaves no half of one; it also leaves no
end mark, and the run is then `unknown`.

    ledger/sent-00000.parquet    number, partition, offset (null: not told), digest, acknowledged
"""

import gc
import sys
import time
from pathlib import Path
from typing import Any

import xxhash
from confluent_kafka import KafkaError, Producer

from onceproof.harness.record import payload
from onceproof.harness.record.tables import LEDGER
from onceproof.workloads.processes import parts
from onceproof.workloads.processes.child import Child

_PART_RECORDS = 50_000
_TICK_S = 0.02
_BEGIN_DEADLINE_S = 300
_FLUSH_DEADLINE_S = 150


class Ledger:
    """Collects rows and writes them in parts."""

    def __init__(self, folder: Path, prefix: str = "sent") -> None:
        self._folder, self._prefix = folder, prefix
        self._rows: list[tuple[int, int, int | None, int, bool]] = []
        self._part = 0
        self.acknowledged = 0
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, number: int, partition: int, offset: int | None, digest: int, *, acknowledged: bool) -> None:
        self._rows.append((number, partition, offset, digest, acknowledged))
        self.acknowledged += acknowledged
        if len(self._rows) >= _PART_RECORDS:
            self.write()

    def write(self) -> None:
        parts.write(self._rows, LEDGER.arrow, self._folder / f"{self._prefix}-{self._part:05d}.parquet")
        self._rows = []
        self._part += 1


class Generator:
    def __init__(self, child: Child) -> None:
        config = child.config
        self._child, self._config = child, config
        self._ledger = Ledger(Path(config["ledger"]))
        self._keys = payload.Keys(config["seed"], config["keys"], config["key_skew"])
        self._partition_of: dict[bytes, int] = {}
        self._sent: dict[int, tuple[int, int]] = {}  # without an answer yet: number → partition, digest
        self._producer = Producer(_producer_config(config))
        self.sent = 0

    def run(self) -> None:
        config = self._config
        rate, least, most = config["records_per_s"], config["records"], config["records_max"]
        tail = round(rate * config["tail_s"])
        if not self._child.begun.wait(_BEGIN_DEADLINE_S):
            sys.exit(f"nobody said `begin` within {_BEGIN_DEADLINE_S} s")
        started = time.monotonic()
        reported = 0.0
        end = most
        while self.sent < min(end, most):
            now = time.monotonic()
            due = min(int((now - started) * rate) + 1, end, most)
            self._send_until(due)
            if end == most and self._child.stopping.is_set():
                end = max(least, self.sent + tail)
            if self._ledger.acknowledged and now - reported >= 1:
                self._child.emit("sent", records=self.sent, acknowledged=self._ledger.acknowledged)
                reported = now
            self._producer.poll(0)
            time.sleep(_TICK_S)  # not poll(_TICK_S), which returns at the first acknowledgement and so would spin
        self._finish()

    def _send_until(self, due: int) -> None:
        config = self._config
        # Behind by more than a second (a stalled cluster): catch up in steps, so that commands are still heard.
        for number in range(self.sent, min(due, self.sent + config["records_per_s"])):
            key = self._keys.key(number)
            value = payload.value(config["seed"], number, config["record_bytes"])
            partition = self._partition(key)
            self._sent[number] = (partition, payload.digest(key, value))
            while True:
                try:
                    self._producer.produce(config["input"], value, key, partition, on_delivery=self._delivered)
                    break
                except BufferError:
                    self._producer.poll(0.1)
            self.sent = number + 1

    def _partition(self, key: bytes) -> int:
        found = self._partition_of.get(key)
        if found is None:
            found = self._partition_of[key] = xxhash.xxh64_intdigest(key) % self._config["partitions"]
        return found

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        number = int(message.value()[: payload.NUMBER_DIGITS])
        partition, digest = self._sent.pop(number)
        # Acknowledged without its offset: a batch that the broker had already. The log then says where it is.
        known = error is None and message.offset() >= 0
        self._ledger.add(number, partition, message.offset() if known else None, digest, acknowledged=error is None)

    def _finish(self) -> None:
        left = self._producer.flush(_FLUSH_DEADLINE_S)
        if left:  # each of them would be missing from the ledger, so there must be no end mark
            self._child.emit("error", call="flush", code="_TIMED_OUT", text=f"{left} records without an answer")
            sys.exit(1)
        self._ledger.write()
        self._child.emit("finished", records=self.sent, acknowledged=self._ledger.acknowledged)


def _producer_config(config: dict[str, Any]) -> dict[str, Any]:
    return {
        "bootstrap.servers": config["bootstrap"],
        "client.id": "generator",
        "enable.idempotence": True,
        "linger.ms": 100,
        "queue.buffering.max.messages": 1_000_000,
        "retry.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1000,
        "log_level": 3,
        **config["client_config"],
        "message.timeout.ms": 120_000,  # the load is not what is tested: it goes on until its inputs are in the log
    }


def main() -> None:
    gc.disable()  # no cycles here, and looking for them costs a fifth of the time
    Generator(Child.begin()).run()


if __name__ == "__main__":
    main()
