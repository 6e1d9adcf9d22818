"""Bait: inputs in transactions that are aborted on purpose, between the inputs that count.

No reader under read_committed sees them, so an output that was made from one shows that its application read what was
never committed. Their numbers begin at `BAIT`, and they are in no ledger.
"""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer

from onceproof.harness.model.contract import BAIT
from onceproof.harness.record.tables import LOAD
from onceproof.workloads.load import Load
from onceproof.workloads.processes import parts

_EVERY_S = 0.5
_TIMEOUT_MS = 6_000
_CALL_S = 10.0


class Bait:
    """Sends bait in a thread of its own.

    - `sent`: how many inputs were sent and aborted. It stops at the first error, as when a broker is down for long.
    """

    def __init__(self, config: Mapping[str, Any], load: Load, producer: Mapping[str, Any]) -> None:
        """Prepare a share `aborted` of a generator's inputs. `producer` is the configuration of its own producer."""
        self._config, self._load = config, load
        self._each = max(1, round(config["aborted"] * config["records_per_s"] * _EVERY_S))
        own = {"transactional.id": f"{config['prefix']}-bait", "transaction.timeout.ms": _TIMEOUT_MS}
        self._producer = Producer({**producer, **own, "message.timeout.ms": _TIMEOUT_MS})
        self._rows: list[tuple[int, bytes | None, bytes | None]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bait", daemon=True)
        self.sent = 0

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def finish(self) -> None:
        """Stop sending, and write what was sent as a part of the load."""
        self._ended.set()
        self._thread.join(3 * _CALL_S)
        parts.write(self._rows, LOAD.arrow, Path(self._config["ledger"]) / "load-bait.parquet")

    def _run(self) -> None:
        try:
            self._producer.init_transactions(_CALL_S)
            while not self._ended.wait(_EVERY_S):
                self._producer.begin_transaction()
                for _ in range(self._each):
                    self._send(BAIT + len(self._rows))
                self._producer.flush(_CALL_S)
                self._producer.abort_transaction(_CALL_S)
                self.sent = len(self._rows)
        except (KafkaException, BufferError):
            return  # its coordinator aborts the last transaction

    def _send(self, number: int) -> None:
        record = self._load.record(number)
        self._rows.append((number, record.key, record.value))
        partition = number % int(self._config["partitions"])
        self._producer.produce(self._config["input"], record.value, record.key, partition, headers=list(record.headers))
