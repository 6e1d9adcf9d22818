"""What people write today: a consumer, a dict, and a look at whether every input came out once. For benchmarks.

    python -m onceproof.workloads.processes.plain_reader '{"bootstrap": …, "input": …, "output": …}'

Inputs into a dict of number → digest, outputs taken out of it. Tuned: batches of 10,000, large fetches, no wait when
the queue is full (`fetch.queue.backoff.ms`, whose default costs a factor of three), no garbage collector.
"""

import gc
import json
import sys
from collections.abc import Iterator
from typing import Any

import xxhash
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from onceproof.harness.record.payload import NUMBER_DIGITS

_BATCH = 10_000
_SILENCE_MAX = 60  # polls of a second each


def main() -> None:
    gc.disable()
    config = json.loads(sys.argv[1])
    digest = xxhash.xxh64_intdigest
    expected: dict[int, int] = {}
    for value in _values(config["bootstrap"], config["input"]):
        expected[int(value[:NUMBER_DIGITS])] = digest(value)
    inputs, wrong = len(expected), 0
    for value in _values(config["bootstrap"], config["output"]):
        if expected.pop(int(value[:NUMBER_DIGITS]), None) != digest(value):
            wrong += 1
    print(json.dumps({"inputs": inputs, "wrong": wrong, "missing": len(expected)}))  # noqa: T201


def _values(bootstrap: str, topic: str) -> Iterator[bytes]:
    """The values of a topic, up to the end of each partition."""
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{topic}-plain",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 5,
            "fetch.message.max.bytes": 16 << 20,
            "fetch.max.bytes": 100 << 20,
            "queued.max.messages.kbytes": 65_536,
        }
    )
    left = set(reader.list_topics(topic, timeout=10).topics[topic].partitions)
    reader.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in left])
    silent = 0
    while left and silent < _SILENCE_MAX:
        messages = reader.consume(_BATCH, timeout=1)
        silent = 0 if messages else silent + 1
        for message in messages:
            error: Any = message.error()
            if error is None:
                yield message.value() or b""
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
            else:
                sys.exit(str(error))
    reader.close()
    if left:
        sys.exit(f"{topic}: no end of partitions {sorted(left)} within {_SILENCE_MAX} s")


if __name__ == "__main__":
    main()
