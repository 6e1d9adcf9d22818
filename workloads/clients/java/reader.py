"""The Java driver's consumer.

As in every driver, records that a poll returns during a rebalance are discarded and fetched again from the committed
offset, since their partitions may belong to another member now. The group metadata that fences by generation (KIP-447)
is that of the poll and not of the moment when offsets are sent.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jpype

from onceproof.harness.model.workload import Source
from onceproof.harness.record.provenance import HEADER
from onceproof.workloads.clients import Batch, ClientError
from onceproof.workloads.clients.java.calls import (
    CALL_TIMEOUT_MS,
    call,
    configured,
    millis,
    partition_of,
    positions,
    properties,
    start_jvm,
)
from onceproof.workloads.clients.settings import Settings, membership, patience_s

_POLL_TIMEOUT_MS = 100
_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_VALUES = {"key.deserializer": _BYTES, "value.deserializer": _BYTES}
_PACKAGE = "org.apache.kafka.clients.consumer"
_ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


class Reader:
    """The consumer of a worker, as `onceproof.workloads.clients.Reader` describes it."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        start_jvm(config)
        self._config = config
        self._topic: str = config["input"]
        self._stage: int = config["stage"]
        self._fixed: list[int] | None = config["fixed"]
        self._patience_s = patience_s(config)
        self._consumer = self._new_consumer(
            configured(
                config,
                {
                    **_VALUES,
                    **membership(config, f"{_PACKAGE}.{_ASSIGNORS[config['assignor']]}"),
                    "max.poll.records": config["transaction_records"],
                    "fetch.max.wait.ms": 100,
                },
            )
        )
        self.places: Callable[[], Mapping[int, int]] | None = None
        self._rebalanced = False
        self._assigned: list[int] = []
        self._next: dict[int, int] = {}
        self._group: Any = None

    def start(self) -> None:
        """Subscribe to the topic, or assign the partitions that the configuration fixes."""
        if self._fixed is not None:
            self._consumer.assign(_list(partition_of(self._topic, partition) for partition in self._fixed))
            self._assigned, self._rebalanced = list(self._fixed), True
            return
        self._consumer.subscribe(_list([jpype.JString(self._topic)]), self._listener())

    def poll(self) -> Batch:
        """Return the next records; after a rebalance none, and the partitions that were assigned."""
        found = call("poll", lambda: self._consumer.poll(millis(_POLL_TIMEOUT_MS))) if not self._rebalanced else None
        if self._rebalanced or found is None:
            self._rebalanced = False
            self._next.clear()
            self.rewind()
            assigned, self._assigned = self._assigned, []
            return Batch(records=[], ranges={}, assigned=assigned)
        self._group = self._metadata()
        records: list[Source] = []
        ranges: dict[int, tuple[int, int]] = {}
        resets: list[dict[str, int]] = []
        for record in found:
            partition, offset = int(record.partition()), int(record.offset())
            expected = self._next.get(partition)
            if expected is not None and expected != offset:
                resets.append({"partition": partition, "expected": expected, "found": offset})
            self._next[partition] = offset + 1
            ranges[partition] = (ranges.get(partition, (offset, 0))[0], offset + 1)
            records.append(self._source(record, partition, offset))
        return Batch(records=records, ranges=ranges, resets=resets)

    def group(self) -> object:
        """Return the group's metadata as of the last poll."""
        return self._group

    def commit(self, ranges: Mapping[int, tuple[int, int]], metadata: str) -> None:
        """Commit the offsets that follow these ranges, outside of any transaction."""
        offsets = positions(self._topic, ranges, metadata)
        call("commit", lambda: self._consumer.commitSync(offsets, millis(CALL_TIMEOUT_MS)), patience=self._patience_s)

    def assigned(self) -> list[int]:
        """Return the partitions that are assigned to this consumer."""
        return [int(each.partition()) for each in self._consumer.assignment()]

    def read_all(self, topic: str, partition: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield key and value of each committed record of a partition, up to its high watermark at the call."""
        place = partition_of(topic, partition)
        reader = self._new_consumer(_restoring(self._config, "read_committed"))
        # Under read_uncommitted the end offset is the high watermark, otherwise the last stable offset.
        uncommitted = self._new_consumer(_restoring(self._config, "read_uncommitted"))
        try:
            ends = call("list-offsets", lambda: uncommitted.endOffsets(_list([place])), patience=self._patience_s)
            end = int(ends.get(place))
            reader.assign(_list([place]))
            reader.seekToBeginning(_list([place]))
            deadline = time.monotonic() + self._patience_s
            while end > 0 and call("restore", lambda: reader.position(place), patience=self._patience_s) < end:
                for record in call("restore", lambda: reader.poll(millis(_POLL_TIMEOUT_MS))):
                    yield bytes(record.key() or b""), bytes(record.value() or b"")
                if time.monotonic() > deadline:
                    text = f"the changelog was not read up to its offset {end} in time"
                    raise ClientError("restore", "_TIMED_OUT", abortable=False, fatal=True, text=text)
        finally:
            uncommitted.close(millis(0))
            reader.close(millis(0))

    def rewind(self) -> None:
        """Seek each assigned partition to its committed offset, or as auto.offset.reset says if it has none.

        With `places`, seek to these.
        """
        assigned = self._consumer.assignment()
        if not len(assigned):
            return
        if self.places is not None:
            places = self.places()
            self._next = {int(place.partition()): places.get(int(place.partition()), 0) for place in assigned}
            for place in assigned:
                self._consumer.seek(place, self._next[int(place.partition())])
            return
        wait = millis(CALL_TIMEOUT_MS)
        found = call("committed", lambda: self._consumer.committed(assigned, wait), patience=self._patience_s)
        self._next = {}
        for place in assigned:
            committed = found.get(place)
            if committed is not None:
                self._next[int(place.partition())] = int(committed.offset())
                self._consumer.seek(place, committed.offset())
            elif self._config["auto_offset_reset"] == "latest":
                self._consumer.seekToEnd(_list([place]))
            else:
                self._consumer.seekToBeginning(_list([place]))

    def close(self) -> None:
        """Leave the group and close the consumer."""
        call("close", lambda: self._consumer.close(millis(CALL_TIMEOUT_MS)))

    def _new_consumer(self, settings: Mapping[str, Any]) -> Any:
        return jpype.JClass(f"{_PACKAGE}.KafkaConsumer")(properties(settings))

    def _metadata(self) -> Any:
        if self._config["generation"]:
            return self._consumer.groupMetadata()
        # The group without a member or generation, as for offsets committed by hand: this fences no zombie.
        return jpype.JClass(f"{_PACKAGE}.ConsumerGroupMetadata")(self._config["group"])

    def _source(self, record: Any, partition: int, offset: int) -> Source:
        header = b""
        if self._stage:
            found = record.headers().lastHeader(HEADER)
            header = bytes(found.value()) if found is not None else b""
        return Source(
            partition=partition,
            offset=offset,
            key=bytes(record.key() or b""),
            value=bytes(record.value() or b""),
            header=header,
            stage=self._stage,
        )

    def _listener(self) -> Any:
        """Return the rebalance listener. It is called inside `poll`, once or several times."""

        def assigned(partitions: Any) -> None:
            self._rebalanced = True
            self._assigned += [int(each.partition()) for each in partitions]

        def revoked(partitions: Any) -> None:
            self._rebalanced = True
            revoked_now = {int(each.partition()) for each in partitions}
            self._assigned = [partition for partition in self._assigned if partition not in revoked_now]

        calls = {"onPartitionsAssigned": assigned, "onPartitionsRevoked": revoked, "onPartitionsLost": revoked}
        return jpype.JProxy(f"{_PACKAGE}.ConsumerRebalanceListener", dict=calls)


def _list(items: Any) -> Any:
    result = jpype.java.util.ArrayList()
    for item in items:
        result.add(item)
    return result


def _restoring(config: Mapping[str, Any], isolation: str) -> Settings:
    return configured(config, {**_VALUES, "isolation.level": isolation, "enable.auto.commit": False})
