"""Measure librdkafka, as `onceproof.bench.clients` describes it."""

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

_CALL_S = 60.0
_WARM_UP_S = 1.0
_LOOK_EVERY = 32  # records between two looks at the clock


class Client:
    """One process's producers and readers, and what it has been asked to measure."""

    def __init__(self, asked: Mapping[str, Any]) -> None:
        self._asked, self._topic = asked, asked["topic"]
        self._value = os.urandom(asked.get("bytes", 100))

    def run(self) -> None:
        """Measure the pairs that were asked for, and print each."""
        what: Callable[[], Iterator[Mapping[str, float]]] = getattr(self, self._asked["what"])
        for found in what():
            sys.stdout.write(json.dumps(found) + "\n")
            sys.stdout.flush()

    def throughput(self) -> Iterator[Mapping[str, float]]:
        """Yield records per second, without and with transactions."""
        sides = {"without": self._producer(""), "with": self._producer("throughput")}
        for name, producer in sides.items():
            self._flood(producer, _WARM_UP_S, name == "with")
        yield from self._pairs(lambda name: self._flood(sides[name], self._asked["seconds"], name == "with"))

    def cost(self) -> Iterator[Mapping[str, float]]:
        """Yield milliseconds, without and with a transaction."""
        sides = {"without": self._producer(""), "with": self._producer("cost")}
        for name, producer in sides.items():
            self._once(producer, name == "with")
        yield from self._pairs(lambda name: self._once(sides[name], name == "with"))

    def read(self) -> Iterator[Mapping[str, float]]:
        """Yield seconds, with read_uncommitted and with read_committed."""
        counts = {"without": self._asked["committed"] + self._asked["aborted"], "with": self._asked["committed"]}
        levels = {"without": "read_uncommitted", "with": "read_committed"}
        self._read(levels["without"], counts["without"])
        yield from self._pairs(lambda name: self._read(levels[name], counts[name]))

    def fill(self) -> Iterator[Mapping[str, float]]:
        """Write `committed` and `aborted` records in transactions of 1000, the aborted ones spread evenly."""
        producer = self._producer("fill")
        left = {"committed": self._asked["committed"], "aborted": self._asked["aborted"]}
        share = left["aborted"] / sum(left.values())
        due = 0.0
        while any(left.values()):
            due += share
            ends = "aborted" if left["aborted"] and (due >= 1 or not left["committed"]) else "committed"
            due -= ends == "aborted"
            producer.begin_transaction()
            for _ in range(count := min(left[ends], 1000)):
                self._send(producer)
            left[ends] -= count
            if ends == "aborted":
                producer.flush(_CALL_S)  # records that were not sent yet would not be written at all
            (producer.commit_transaction if ends == "committed" else producer.abort_transaction)(_CALL_S)
        yield {}

    def scope(self) -> Iterator[Mapping[str, float]]:
        """Yield the records per second of one producer, or of one for each partition."""
        partitions, records = self._asked["partitions"], self._asked["records"]
        apart = self._asked["scope"] == "partition"
        producers = [self._producer(f"scope-{each}") for each in range(partitions if apart else 1)]
        owned = [[each] for each in range(partitions)] if apart else [[*range(partitions)]]
        self._rounds(producers, owned, records, 0)
        started = time.monotonic()
        rounds = self._rounds(producers, owned, records, self._asked["seconds"])
        yield {"rate": rounds * partitions * records / (time.monotonic() - started)}

    def _pairs(self, measure: Callable[[str], float]) -> Iterator[Mapping[str, float]]:
        for pair in range(self._asked["pairs"]):
            order = ("without", "with") if pair % 2 else ("with", "without")
            yield {name: measure(name) for name in order}

    def _producer(self, transactional_id: str) -> Producer:
        config: dict[str, Any] = {
            "bootstrap.servers": self._asked["bootstrap"],
            "enable.idempotence": True,
            "linger.ms": 5,
            "queue.buffering.max.kbytes": 32_768,  # the Java client's default
            "delivery.report.only.error": True,
            "on_delivery": _refused,
            "log_level": 3,
        }
        if not transactional_id:
            return Producer(config)
        producer = Producer({**config, "transactional.id": f"{self._topic}-{transactional_id}", "retry.backoff.ms": 5})
        producer.init_transactions(_CALL_S)
        return producer

    def _flood(self, producer: Producer, seconds: float, transactional: bool) -> float:
        """Send as fast as possible, and return records per second."""
        every, sent = self._asked["interval_ms"] / 1000, 0
        started = time.monotonic()
        end, following = started + seconds, started + every
        if transactional:
            producer.begin_transaction()
        while (now := time.monotonic()) < end:
            if transactional and now >= following:
                producer.commit_transaction(_CALL_S)
                producer.begin_transaction()
                following = time.monotonic() + every
            for _ in range(_LOOK_EVERY):
                self._send(producer)
            sent += _LOOK_EVERY
        self._finish(producer, transactional)
        return sent / (time.monotonic() - started)

    def _once(self, producer: Producer, transactional: bool) -> float:
        """Send some records, and return the milliseconds until they are acknowledged, or committed."""
        partitions = self._asked["partitions"]
        started = time.monotonic()
        if transactional:
            producer.begin_transaction()
        for number in range(self._asked["records"]):
            self._send(producer, number % partitions)
        self._finish(producer, transactional)
        return (time.monotonic() - started) * 1000

    def _rounds(self, producers: list[Producer], owned: list[list[int]], records: int, seconds: float) -> int:
        """Run transactions, one for each producer in each round, and return the number of rounds."""
        end, rounds = time.monotonic() + seconds, 0
        while not rounds or time.monotonic() < end:
            for producer, partitions in zip(producers, owned, strict=True):
                producer.begin_transaction()
                for partition in partitions:
                    for _ in range(records):
                        self._send(producer, partition)
                producer.commit_transaction(_CALL_S)
            rounds += 1
        return rounds

    def _send(self, producer: Producer, partition: int = -1) -> None:
        for _ in range(600):
            try:
                producer.produce(self._topic, self._value, partition=partition)
                return
            except BufferError:
                producer.poll(0.01)
        sys.exit("the producer's queue was full for six seconds")

    def _finish(self, producer: Producer, transactional: bool) -> None:
        if transactional:
            producer.commit_transaction(_CALL_S)
        elif producer.flush(_CALL_S):
            sys.exit("some records were not acknowledged in time")

    def _read(self, isolation: str, records: int) -> float:
        """Read the topic to its end, and return the seconds from the first poll."""
        reader = Consumer(
            {
                "bootstrap.servers": self._asked["bootstrap"],
                "group.id": f"{self._topic}-reader",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "fetch.queue.backoff.ms": 5,
                "queued.max.messages.kbytes": 65_536,
            }
        )
        partitions = reader.list_topics(self._topic, _CALL_S).topics[self._topic].partitions
        reader.assign([TopicPartition(self._topic, each, OFFSET_BEGINNING) for each in partitions])
        started, read = time.monotonic(), 0
        while read < records:
            found = reader.consume(min(10_000, records - read), 0.1)  # it waits until it has as many
            read += len(found)
            if time.monotonic() > started + _CALL_S * 5 or any(each.error() for each in found):
                sys.exit(f"only {read} of {records} records were read")
        seconds = time.monotonic() - started
        reader.close()
        return seconds


def _refused(error: KafkaError | None, _message: object) -> None:
    if error is not None:
        os.write(2, f"a record was not acknowledged: {error}\n".encode())
        os._exit(1)


if __name__ == "__main__":
    gc.disable()
    Client(json.loads(sys.argv[1])).run()
