"""A plain verifier, the baseline of a benchmark: a consumer and a dict that check whether every input was copied once.

    python -m onceproof.workloads.processes.plain_reader '{"bootstrap": …, "input": …, "output": …}'

It puts the inputs into a dict of number → digest, removes the outputs from it, and prints `inputs`, `wrong` and
`missing` as JSON. It is tuned: batches of 10,000 records, large fetches, no wait when the queue is full
(`fetch.queue.backoff.ms`, whose default is three times slower), and no garbage collector.
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
_SILENCE_MAX = 60  # polls of one second each


def main() -> None:
    """Compare the outputs with the inputs, and print the counts."""
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
    """Yield the values of a topic, up to the end of each partition. Exits after 60 s without a record."""
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
        sys.exit(f"{topic}: no record for {_SILENCE_MAX} s before the end of partitions {sorted(left)}")


if __name__ == "__main__":
    main()
