"""The live observer: reads an output topic under read_committed during the run, with a client of the other family.

If the workers use librdkafka, the observer uses Apache Kafka's Java consumer (the console consumer, as a process of its
own, with a formatter that writes frames, so that any key and value is read), and librdkafka if the workers use the Java
client. The check for `inconsistent-read` compares what it saw at each offset with what a reader sees at the end.

    ledger/<topic>/observed-00000.parquet    topic, partition, offset, number (null: foreign record), digest,
                                             at (CLOCK_MONOTONIC, seconds)
"""

import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from confluent_kafka import Consumer

from onceproof.harness.artifacts import jars
from onceproof.harness.artifacts.clients import DEFAULT_KAFKA
from onceproof.harness.base import host
from onceproof.harness.record import payload
from onceproof.harness.record.tables import OBSERVED
from onceproof.workloads.processes.child import Child
from onceproof.workloads.processes.parts import Parts

_FRAME = struct.Struct(">iqii")  # partition, offset, length of the key, length of the value; -1 is null
_SOURCES = Path(__file__).with_name("java") / "onceproof"
_PART_RECORDS = 100_000
_QUIET_S = 1.0
_DRAIN_MAX_S = 20.0
_FIRST_RECORD_S = 60.0


class Observer:
    """The observer of one topic."""

    def __init__(self, child: Child) -> None:
        self._child, self._config = child, child.config
        self._parts = Parts(Path(child.config["ledger"]), "observed", OBSERVED.arrow, most=_PART_RECORDS)
        self._seen = 0
        self._last_record = time.monotonic()
        self._stop_seen = 0.0

    def run(self) -> None:
        """Read until the command `stop` and a little longer, write the table, and report the number of records."""
        if self._config["family"] == "java":
            self._watch_by_java()
        else:
            self._watch_by_librdkafka()
        self._parts.write()
        self._child.emit("finished", topic=self._config["topic"], records=self._seen)

    def _watch_by_java(self) -> None:
        reader = subprocess.Popen(_command(self._config), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        threading.Thread(target=self._terminate_at_end, args=(reader,), daemon=True).start()
        assert reader.stdout is not None
        for partition, offset, key, value in framed(reader.stdout):
            self._last_record = time.monotonic()
            self._add(partition, offset, key, value)

    def _terminate_at_end(self, reader: subprocess.Popen[bytes]) -> None:
        self._child.stopping.wait()
        while not self._finished():
            time.sleep(0.1)
        reader.terminate()

    def _watch_by_librdkafka(self) -> None:
        reader = Consumer(consumer_config(self._config))
        reader.subscribe([self._config["topic"]])
        while not self._finished():
            for message in reader.consume(1000, timeout=0.1):
                if message.error() is None:
                    self._last_record = time.monotonic()
                    self._add(message.partition(), message.offset(), message.key(), message.value())
        reader.close()

    def _finished(self) -> bool:
        """Whether to end: after `stop`, when no record has come for 1 s, and at the latest after 20 s.

        An observer that has seen no record at all waits for 60 s, since its client may start slower than a short run
        ends.
        """
        if not self._child.stopping.is_set():
            return False
        now = time.monotonic()
        self._stop_seen = self._stop_seen or now
        if not self._seen:
            return now >= self._stop_seen + _FIRST_RECORD_S
        return now >= min(self._stop_seen + _DRAIN_MAX_S, self._last_record + _QUIET_S)

    def _add(self, partition: int, offset: int, key: bytes | None, value: bytes | None) -> None:
        number, digest = payload.number(value or b""), payload.digest(key, value)
        self._seen += 1
        self._parts.add(self._config["topic"], partition, offset, number, digest, round(self._last_record, 3))


def framed(stream: IO[bytes]) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
    """Yield partition, offset, key and value of each record in the output of `FrameFormatter`.

    An incomplete frame at the end, of a process that was killed, is left out.
    """
    while len(head := stream.read(_FRAME.size)) == _FRAME.size:
        partition, offset, key_bytes, value_bytes = _FRAME.unpack(head)
        body = stream.read(max(0, key_bytes) + max(0, value_bytes))
        if len(body) < max(0, key_bytes) + max(0, value_bytes):
            return
        key, value = body[: max(0, key_bytes)], body[max(0, key_bytes) :]
        yield partition, offset, key if key_bytes >= 0 else None, value if value_bytes >= 0 else None


def formatter() -> Path:
    """Return the jar of `FrameFormatter`. Raises HarnessError when it does not compile."""
    kafka = sorted(jars.kafka(DEFAULT_KAFKA).glob("*.jar"))
    return jars.compiled("frame-formatter", sorted(_SOURCES.glob("*.java")), kafka)


def consumer_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of an observer's librdkafka consumer."""
    return {
        "bootstrap.servers": config["bootstrap"],
        "group.id": config["group"],
        "log_level": 3,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        **config["client_config"],
    }


def _command(config: dict[str, Any]) -> list[str]:
    command = [
        "java",
        "-Xmx128m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Dlog4j2.level=OFF",
        "-cp",
        f"{jars.kafka(DEFAULT_KAFKA)}/*:{formatter()}",
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
        "--formatter",
        "onceproof.FrameFormatter",
    ]
    return host.ending_with_parent(command)


def main() -> None:
    """Run an observer with the configuration that the harness sends."""
    Observer(Child.begin()).run()


if __name__ == "__main__":
    main()
