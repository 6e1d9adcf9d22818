"""The live observer: reads the output under read_committed while the run goes on, with a client of the other family.

Where the workers use librdkafka, Apache's own Java consumer watches (the console consumer, as a process of its own; its
lines are split here), and librdkafka where they use the Java client. What it saw at which offset is the second reader
of `inconsistent-read`.

    ledger/<topic>/observed-00000.parquet    topic, partition, offset, number (null: not ours), digest,
                                             at (CLOCK_MONOTONIC, seconds)
"""

import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer

from onceproof.harness.artifacts import jars
from onceproof.harness.artifacts.clients import DEFAULT_KAFKA
from onceproof.harness.record import payload
from onceproof.harness.record.tables import OBSERVED
from onceproof.workloads.processes import parts
from onceproof.workloads.processes.child import Child

_PART_RECORDS = 100_000
_QUIET_S = 1.0
_LAST_S = 20.0
_FIRST_S = 60.0  # its client may be slower to start than a short run is to end


class Observer:
    def __init__(self, child: Child) -> None:
        self._child, self._config = child, child.config
        self._folder = Path(child.config["ledger"])
        self._rows: list[tuple[str, int, int, int | None, int, float]] = []
        self._part = 0
        self._seen = 0
        self._strange = 0
        self._last = time.monotonic()
        self._asked = 0.0

    def run(self) -> None:
        if self._config["family"] == "java":
            self._watch_by_java()
        else:
            self._watch_by_librdkafka()
        self._write()
        self._child.emit("finished", topic=self._config["topic"], records=self._seen, not_understood=self._strange)

    def _watch_by_java(self) -> None:
        reader = subprocess.Popen(_command(self._config), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        threading.Thread(target=self._terminate_at_end, args=(reader,), daemon=True).start()
        assert reader.stdout is not None
        for line in reader.stdout:
            self._last = time.monotonic()
            try:
                partition, offset, key, value = line.rstrip(b"\n").split(b"\t", 3)
                place = int(partition[10:]), int(offset[7:])
            except ValueError:  # a record that is not ours, with a line's end in it
                self._strange += 1
                continue
            self._take(*place, key, value)

    def _terminate_at_end(self, reader: subprocess.Popen[bytes]) -> None:
        self._child.stopping.wait()
        while not self._over():
            time.sleep(0.1)
        reader.terminate()

    def _watch_by_librdkafka(self) -> None:
        reader = Consumer(
            {
                "bootstrap.servers": self._config["bootstrap"],
                "group.id": self._config["group"],
                "log_level": 3,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **self._config["client_config"],
            }
        )
        reader.subscribe([self._config["topic"]])
        while not self._over():
            for message in reader.consume(1000, timeout=0.1):
                if message.error() is None:
                    self._last = time.monotonic()
                    self._take(message.partition(), message.offset(), message.key() or b"", message.value() or b"")
        reader.close()

    def _over(self) -> bool:
        """Once it is asked to stop: nothing has come for a while, or too much still comes, or nothing ever came."""
        if not self._child.stopping.is_set():
            return False
        now = time.monotonic()
        self._asked = self._asked or now
        if not self._seen:
            return now >= self._asked + _FIRST_S
        return now >= min(self._asked + _LAST_S, self._last + _QUIET_S)

    def _take(self, partition: int, offset: int, key: bytes, value: bytes) -> None:
        number, digest = payload.number(value), payload.digest(key, value)
        self._seen += 1
        self._rows.append((self._config["topic"], partition, offset, number, digest, round(self._last, 3)))
        if len(self._rows) >= _PART_RECORDS:
            self._write()

    def _write(self) -> None:
        parts.write(self._rows, OBSERVED.arrow, self._folder / f"observed-{self._part:05d}.parquet")
        self._rows, self._part = [], self._part + 1


def _command(config: dict[str, Any]) -> list[str]:
    show = ["print.partition=true", "print.offset=true", "print.key=true", "key.separator=\t"]
    return [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "java",
        "-Xmx128m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Dlog4j2.level=OFF",
        "-cp",
        str(jars.kafka(DEFAULT_KAFKA) / "*"),
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        "--bootstrap-server",
        config["bootstrap"],
        "--topic",
        config["topic"],
        "--group",
        config["group"],
        "--from-beginning",
        "--isolation-level",
        "read_committed",
        "--skip-message-on-error",
        *(part for each in show for part in ("--formatter-property", each)),
    ]


def main() -> None:
    Observer(Child.begin()).run()


if __name__ == "__main__":
    main()
