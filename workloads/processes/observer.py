"""The live observer: reads the output under read_committed while the run goes on, with a client of the other family.

The workers use librdkafka, so it is Apache's own Java consumer that watches (the console consumer, as a process of
its own; its lines are split here). What it saw at which offset is the second reader of `inconsistent-read`.

    ledger/<topic>/observed-00000.parquet    topic, partition, offset, number (null: not ours), digest,
                                             at (CLOCK_MONOTONIC, seconds)
"""

import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness import jars, payload
from harness.scenario import DEFAULT_KAFKA
from workloads.processes.child import Child

SCHEMA = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("number", pa.int64()),
     ("digest", pa.int64()), ("at", pa.float64())],
    metadata={"schema_version": "1"},
)  # fmt: skip
_PART_RECORDS = 100_000
_QUIET_S = 1.0
_LAST_S = 20.0


class Observer:
    def __init__(self, child: Child) -> None:
        self._child, self._config = child, child.config
        self._folder = Path(child.config["ledger"])
        self._rows: list[tuple[str, int, int, int | None, int, float]] = []
        self._part = 0
        self._seen = 0
        self._strange = 0
        self._last_line = time.monotonic()

    def run(self) -> None:
        topic = self._config["topic"]
        reader = subprocess.Popen(_command(self._config), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        threading.Thread(target=self._end_when_quiet, args=(reader,), daemon=True).start()
        assert reader.stdout is not None
        for line in reader.stdout:
            self._take(topic, line)
        self._write()
        self._child.emit("finished", topic=topic, records=self._seen, not_understood=self._strange)

    def _take(self, topic: str, line: bytes) -> None:
        self._last_line = now = time.monotonic()
        try:
            partition, offset, key, value = line.rstrip(b"\n").split(b"\t", 3)
            row = (topic, int(partition[10:]), int(offset[7:]), payload.number(value), payload.digest(key, value),
                   round(now, 3))  # fmt: skip
        except ValueError:  # a record that is not ours, with a line's end in it
            self._strange += 1
            return
        self._seen += 1
        self._rows.append(row)
        if len(self._rows) >= _PART_RECORDS:
            self._write()

    def _end_when_quiet(self, reader: subprocess.Popen[bytes]) -> None:
        self._child.stopping.wait()
        deadline = time.monotonic() + _LAST_S
        while time.monotonic() < min(deadline, self._last_line + _QUIET_S):
            time.sleep(0.1)
        reader.terminate()

    def _write(self) -> None:
        columns: list[Any] = list(zip(*self._rows, strict=True)) if self._rows else [[] for _ in SCHEMA]
        target = self._folder / f"observed-{self._part:05d}.parquet"
        pq.write_table(pa.table(columns, schema=SCHEMA), target.with_suffix(".tmp"))
        target.with_suffix(".tmp").rename(target)
        self._rows, self._part = [], self._part + 1


def _command(config: dict[str, Any]) -> list[str]:
    show = ["print.partition=true", "print.offset=true", "print.key=true", "key.separator=\t"]
    return [
        "setpriv", "--pdeathsig", "KILL",
        "java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=OFF",
        "-cp", str(jars.kafka(DEFAULT_KAFKA) / "*"), "org.apache.kafka.tools.consumer.ConsoleConsumer",
        "--bootstrap-server", config["bootstrap"], "--topic", config["topic"], "--group", config["group"],
        "--from-beginning", "--isolation-level", "read_committed", "--skip-message-on-error",
        *(part for each in show for part in ("--formatter-property", each)),
    ]  # fmt: skip


def main() -> None:
    Observer(Child.begin()).run()


if __name__ == "__main__":
    main()
