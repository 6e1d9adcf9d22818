"""The generator: sends inputs at a steady rate, and keeps a ledger of what was sent and what was acknowledged.

It starts with the command `begin`, sends at least `records`, and continues at its rate until the command `stop`, which
the harness sends when the last fault is healed. Then it sends a tail of `tail_s` seconds, so that no fault meets an
idle pipeline. It sends `records_max` at most. Each file of the ledger is written in full and then renamed. A generator
that is killed leaves no partial file and no end mark (`finished`), and the run is then `unknown`.

    ledger/sent-00000.parquet    number, partition, offset (null: not reported), digest, grouping,
                                acknowledged
    ledger/load-00000.parquet    number, key, value; only if an application has a contract of its own
"""

import gc
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import xxhash
from confluent_kafka import KafkaError, Producer

from onceproof.harness.base.errors import BadInput
from onceproof.harness.record import payload
from onceproof.harness.record.tables import LEDGER, LOAD
from onceproof.workloads import load
from onceproof.workloads.processes.bait import Bait
from onceproof.workloads.processes.child import Child
from onceproof.workloads.processes.parts import Parts

_PART_RECORDS = 50_000
_TICK_S = 0.02
_BEGIN_DEADLINE_S = 300
_FLUSH_DEADLINE_S = 150


class Ledger:
    """The inputs that were sent, in parts.

    - `acknowledged`: how many of the rows are acknowledged.
    """

    def __init__(self, folder: Path, prefix: str = "sent") -> None:
        self._parts = Parts(folder, prefix, LEDGER.arrow, most=_PART_RECORDS)
        self.acknowledged = 0

    def add(
        self, number: int, partition: int, offset: int | None, digest: int, grouping: int, *, acknowledged: bool
    ) -> None:
        """Add an input; `offset` is None if the client did not report it, `grouping` is the hash of its key."""
        self.acknowledged += acknowledged
        self._parts.add(number, partition, offset, digest, grouping, acknowledged)

    def write(self) -> None:
        """Write the rows that are not written yet as the next part."""
        self._parts.write()


class Generator:
    """The generator, with its producer and its ledger.

    - `sent`: how many inputs were sent.
    """

    def __init__(self, child: Child) -> None:
        config = child.config
        self._child, self._config = child, config
        self._ledger = Ledger(Path(config["ledger"]))
        self._load = load.load(config)
        kept = Parts(Path(config["ledger"]), "load", LOAD.arrow, most=_PART_RECORDS) if config["load"] else None
        self._kept = kept  # the content of the inputs, if an application has a contract of its own
        self._partition_of: dict[bytes, int] = {}
        self._grouping_of: dict[bytes | None, int] = {}
        self._sent: dict[int, tuple[int, int, int]] = {}  # not acknowledged yet: number → partition, digest, grouping
        self._producer = Producer(producer_config(config))
        self._bait = Bait(config, self._load, producer_config(config)) if config["aborted"] else None
        self.sent = 0

    def run(self) -> None:
        """Wait for `begin`, send all inputs, and finish the ledger. Exits with an error after 300 s without `begin`."""
        config = self._config
        rate, least, most = config["records_per_s"], config["records"], config["records_max"]
        most = min(most, self._load.records_max or most)
        tail = round(rate * config["tail_s"])
        if not self._child.begun.wait(_BEGIN_DEADLINE_S):
            sys.exit(f"the command `begin` did not come within {_BEGIN_DEADLINE_S} s")
        if self._bait is not None:
            self._bait.start()
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
            time.sleep(_TICK_S)  # poll(_TICK_S) would return at the first acknowledgement, and the loop would spin
        self._finish()

    def _send_until(self, due: int) -> None:
        config = self._config
        # More than a second behind (a stalled cluster): catch up in steps, so that commands are still processed.
        for number in range(self.sent, min(due, self.sent + config["records_per_s"])):
            record = self._load.record(number)
            partition = self._partition(number, record.key)
            self._sent[number] = (partition, payload.digest(record.key, record.value), self._grouping(record.key))
            told, headers = partial(self._delivered, number), list(record.headers)
            if self._kept is not None:
                self._kept.add(number, record.key, record.value)
            while True:
                try:
                    self._producer.produce(
                        config["input"], record.value, record.key, partition, on_delivery=told, headers=headers
                    )
                    break
                except BufferError:
                    self._producer.poll(0.1)
            self.sent = number + 1

    def _partition(self, number: int, key: bytes | None) -> int:
        if key is None:
            return number % int(self._config["partitions"])
        found = self._partition_of.get(key)
        if found is None:
            found = self._partition_of[key] = xxhash.xxh64_intdigest(key) % self._config["partitions"]
        return found

    def _grouping(self, key: bytes | None) -> int:
        found = self._grouping_of.get(key)
        if found is None:
            found = self._grouping_of[key] = payload.key_hash(key)
        return found

    def _delivered(self, number: int, error: KafkaError | None, message: Any) -> None:
        partition, digest, grouping = self._sent.pop(number)
        # A batch that the broker already had is acknowledged without its offset. The log then shows where it is.
        known = error is None and message.offset() >= 0
        offset = message.offset() if known else None
        self._ledger.add(number, partition, offset, digest, grouping, acknowledged=error is None)

    def _finish(self) -> None:
        if self._bait is not None:
            self._bait.finish()
        left = self._producer.flush(_FLUSH_DEADLINE_S)
        if left:  # these inputs are missing from the ledger, so there must be no end mark
            self._child.emit(
                "error", call="flush", code="_TIMED_OUT", text=f"{left} inputs were not acknowledged in time"
            )
            sys.exit(1)
        self._ledger.write()
        if self._kept is not None:
            self._kept.write()
        bait = {} if self._bait is None else {"bait": self._bait.sent}
        self._child.emit("finished", records=self.sent, acknowledged=self._ledger.acknowledged, **bait)


def producer_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of the generator's producer."""
    return {
        "bootstrap.servers": config["bootstrap"],
        "client.id": "generator",
        "enable.idempotence": True,
        "linger.ms": 100,
        "compression.type": config["compression"],
        "queue.buffering.max.messages": 1_000_000,
        "retry.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1000,
        "log_level": 3,
        **config["client_config"],
        "message.timeout.ms": 120_000,  # the load is not under test: retry until its inputs are in the log
    }


def main() -> None:
    """Run the generator with the configuration that the harness sends."""
    gc.disable()  # there are no reference cycles, and looking for them takes a fifth of the time
    child = Child.begin()
    try:
        Generator(child).run()
    except BadInput as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
