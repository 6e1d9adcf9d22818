"""Fill topics for a benchmark: inputs and their copies, as fast as possible.

A filler owns every `fillers`-th partition. It sends inputs with an idempotent producer, and outputs with provenance
headers and committed offsets in transactions, as a worker does. It also writes the ledger and the manifests. It does
not read the inputs: in a new topic, an input's offset is its index in the partition. A filler whose producer loses a
record exits.

    ledger/sent-<filler>-00000.parquet    the same columns as the generator's
"""

import gc
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from onceproof.harness.record import payload
from onceproof.harness.record.provenance import HEADER, provenance
from onceproof.workloads.processes.child import Child
from onceproof.workloads.processes.generator import Ledger

_CALL_DEADLINE_S = 60.0
_FLUSH_DEADLINE_S = 120.0
_PROGRESS_S = 1.0
_BATCH_RECORDS = 500  # a batch is sent when it is full or its transaction ends, so that its size is that of any machine


class Filler:
    """One filler, with its two producers and its ledger."""

    def __init__(self, child: Child) -> None:
        config = child.config
        self._child, self._config = child, config
        self._worker: int = config["worker"]
        self._partitions: int = config["partitions"]
        self._input, self._output = config["topics"]["input"], config["topics"]["output"]
        self._ledger = Ledger(Path(config["ledger"]), prefix=f"sent-{self._worker}")
        self._keys = payload.Keys(config["seed"], config["keys"], 0.0)
        common = {
            "bootstrap.servers": config["bootstrap"],
            "enable.idempotence": True,
            "linger.ms": 1_000,
            "batch.num.messages": _BATCH_RECORDS,
            "compression.type": config["compression"],
            "queue.buffering.max.kbytes": 65_536,
            "error_cb": self._failed,
            "log_level": 3,
        }
        self._inputs = Producer(common)
        transactional_id = config["transactional_id"]
        self._outputs = Producer({**common, "transactional.id": transactional_id, "retry.backoff.ms": 5})
        # Never subscribed: its metadata is that of the group without a member, as for offsets committed by hand.
        self._group = Consumer({"bootstrap.servers": config["bootstrap"], "group.id": config["group"]})
        self._read: dict[int, int] = {}
        self._written: dict[int, int] = {}

    def run(self) -> None:
        """Send all records, one transaction after the other, and finish the ledger. Exits on an error."""
        self._outputs.init_transactions(_CALL_DEADLINE_S)
        owned = list(range(self._worker, self._partitions, self._config["fillers"]))
        self._child.emit("assigned", partitions=owned)
        numbers = self._numbers()
        sent, told = 0, 0.0
        for transaction in itertools.count(1):
            batch = list(itertools.islice(numbers, self._config["transaction_records"]))
            if not batch:
                break
            self._transact(transaction, batch)
            sent += len(batch)
            if time.monotonic() - told >= _PROGRESS_S:
                self._child.emit("filled", records=sent)
                told = time.monotonic()
        if self._inputs.flush(_FLUSH_DEADLINE_S):
            sys.exit("some inputs were not acknowledged in time")
        self._ledger.write()
        self._group.close()
        self._child.emit("finished", records=sent)

    def _numbers(self) -> Iterator[int]:
        """Yield the numbers of the inputs for this filler's partitions, in order."""
        fillers = self._config["fillers"]
        for first in range(0, self._config["records"], self._partitions):
            owned = range(first + self._worker, min(first + self._partitions, self._config["records"]), fillers)
            yield from owned

    def _transact(self, transaction: int, numbers: list[int]) -> None:
        started = dict(self._read)
        identity = f"{self._worker},1,{transaction}"
        counts: dict[int, int] = {}
        self._outputs.begin_transaction()
        self._child.emit("begin", transaction=transaction)
        for number in numbers:
            partition = number % self._partitions
            header = provenance(partition, number // self._partitions, self._worker, 1, transaction)
            self._send(number, partition, header)
            counts[partition] = counts.get(partition, 0) + 1
        sources, outputs = {}, {}
        for partition, count in counts.items():
            first, place = started.get(partition, 0), self._written.get(partition, 0)
            sources[str(partition)] = [first, first + count]
            outputs[f"{self._output}/{partition}"] = [count, place, place + count - 1]
            self._read[partition] = first + count
            self._written[partition] = place + count + 1  # the marker takes one offset
        positions = [TopicPartition(self._input, partition, self._read[partition], identity) for partition in counts]
        metadata = self._group.consumer_group_metadata()
        self._outputs.send_offsets_to_transaction(positions, metadata, _CALL_DEADLINE_S)
        manifest = {"transaction": transaction, "sources": sources, "records": len(numbers)}
        self._child.emit("invoke", outputs=outputs, **manifest)
        self._outputs.commit_transaction(_CALL_DEADLINE_S)
        self._child.emit("outcome", type="ok", **manifest)

    def _send(self, number: int, partition: int, header: bytes) -> None:
        key = self._keys.key(number)
        value = payload.value(self._config["seed"], number, self._config["record_bytes"])
        _produce(self._inputs, self._input, value, key, partition)
        _produce(self._outputs, self._output, value, key, partition, headers=[(HEADER, header)])
        self._ledger.add(
            number,
            partition,
            number // self._partitions,
            payload.digest(key, value),
            payload.key_hash(key),
            acknowledged=True,
        )

    def _failed(self, error: KafkaError) -> None:
        if error.fatal():
            sys.exit(f"{error.name()}: {error.str()}")


def _produce(producer: Producer, *record: Any, **more: Any) -> None:
    for _ in range(600):
        try:
            producer.produce(*record, **more)
            return
        except BufferError:
            producer.poll(0.1)
    sys.exit("the producer's queue was full for a minute")


def main() -> None:
    """Run a filler with the configuration that the harness sends."""
    gc.disable()
    Filler(Child.begin()).run()


if __name__ == "__main__":
    main()
