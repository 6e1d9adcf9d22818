"""The librdkafka driver's consumer.

Two points that a pipeline can easily get wrong:

- The group metadata that fences by generation (KIP-447) is taken when records are polled, not when offsets are sent. By
  then a background thread may have left the group, and offsets sent without a generation are not fenced.
- Records that a poll returns during a rebalance are discarded, and each partition is fetched again from its committed
  offset, since some of the partitions may belong to another member now.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from onceproof.harness.model.workload import Source
from onceproof.harness.record.provenance import HEADER
from onceproof.workloads.clients import Batch, ClientError
from onceproof.workloads.clients.librdkafka.calls import (
    CALL_TIMEOUT_S,
    call,
    client_error,
    configured,
    positions,
    retrying,
)
from onceproof.workloads.clients.settings import membership, patience_s

_POLL_TIMEOUT_S = 0.1


class Reader:
    """The consumer of a worker, as `onceproof.workloads.clients.Reader` describes it."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._topic: str = config["input"]
        self._stage: int = config["stage"]
        self._batch: int = config["transaction_records"]
        self._fixed: list[int] | None = config["fixed"]
        self._reset = OFFSET_END if config["auto_offset_reset"] == "latest" else OFFSET_BEGINNING
        # Cooperative assignors and the consumer protocol require incremental assign and unassign.
        self._eager = config["group_protocol"] == "classic" and config["assignor"] != "cooperative-sticky"
        self._patience_s = patience_s(config)
        self._consumer = Consumer(
            configured(
                config,
                {
                    **membership(config, config["assignor"]),
                    "fetch.wait.max.ms": 100,
                    "fetch.queue.backoff.ms": 5,
                    "queued.max.messages.kbytes": 4096,
                },
            )
        )
        self.places: Callable[[], Mapping[int, int]] | None = None
        self._rebalanced = False
        self._assigned: list[int] = []
        self._next: dict[int, int] = {}
        self._group: Any = None
        # The group without a member or generation, as for offsets committed by hand: this fences no zombie.
        self._without_member = None
        if not config["generation"]:
            self._without_member = Consumer(configured(config, {"group.id": config["group"]}))

    def start(self) -> None:
        """Subscribe to the topic, or assign the partitions that the configuration fixes."""
        if self._fixed is not None:
            self._consumer.assign([TopicPartition(self._topic, partition) for partition in self._fixed])
            self._assigned, self._rebalanced = list(self._fixed), True
            return
        self._consumer.subscribe(
            [self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
        )

    def poll(self) -> Batch:
        """Return the next records; after a rebalance none, and the partitions that were assigned."""
        messages = [] if self._rebalanced else self._consumer.consume(self._batch, timeout=_POLL_TIMEOUT_S)
        if self._rebalanced:
            self._rebalanced = False
            self._next.clear()
            self.rewind()
            assigned, self._assigned = self._assigned, []
            return Batch(records=[], ranges={}, assigned=assigned)
        self._group = (self._without_member or self._consumer).consumer_group_metadata()
        records: list[Source] = []
        ranges: dict[int, tuple[int, int]] = {}
        resets: list[dict[str, int]] = []
        for message in messages:
            error = message.error()
            if error is not None:
                if error.fatal():
                    raise client_error("poll", error)
                continue
            partition, offset = message.partition(), message.offset()
            expected = self._next.get(partition)
            if expected is not None and expected != offset:
                resets.append({"partition": partition, "expected": expected, "found": offset})
            self._next[partition] = offset + 1
            ranges[partition] = (ranges.get(partition, (offset, 0))[0], offset + 1)
            records.append(self._source(message))
        return Batch(records=records, ranges=ranges, resets=resets)

    def group(self) -> object:
        """Return the group's metadata as of the last poll."""
        return self._group

    def commit(self, ranges: Mapping[int, tuple[int, int]], metadata: str) -> None:
        """Commit the offsets that follow these ranges, outside of any transaction."""
        offsets = positions(self._topic, ranges, metadata)
        self._retrying("commit", lambda: self._consumer.commit(offsets=offsets, asynchronous=False))

    def assigned(self) -> list[int]:
        """Return the partitions that are assigned to this consumer."""
        return [each.partition for each in self._consumer.assignment()]

    def read_all(self, topic: str, partition: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield key and value of each committed record of a partition, up to its high watermark at the call."""
        place = TopicPartition(topic, partition, OFFSET_BEGINNING)
        ends: list[int] = []

        def high_watermark() -> None:
            admin = AdminClient(configured(self._config, {}))
            futures = admin.list_offsets(
                {TopicPartition(topic, partition): OffsetSpec.latest()},
                request_timeout=CALL_TIMEOUT_S,
                isolation_level=IsolationLevel.READ_UNCOMMITTED,
            )
            try:
                ends[:] = [each.result(CALL_TIMEOUT_S).offset for each in futures.values()]
            except TimeoutError:  # that of the future, which may come before that of the request
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None

        self._retrying("list-offsets", high_watermark)
        reader = Consumer(
            configured(
                self._config,
                {
                    "group.id": f"{self._config['name']}-restores",
                    "enable.partition.eof": True,
                    "isolation.level": "read_committed",
                    "enable.auto.commit": False,
                },
            )
        )
        try:
            reader.assign([place])
            yield from self._read_until(reader, ends[0])
        finally:
            reader.close()

    def rewind(self) -> None:
        """Assign each partition at its committed offset, or as auto.offset.reset says if it has none.

        With `places`, assign it there.
        """
        assigned = self._consumer.assignment()
        if not assigned:
            return
        found: list[TopicPartition] = []

        def committed() -> None:
            found[:] = self._consumer.committed(assigned, timeout=CALL_TIMEOUT_S)
            for each in found:
                if each.error is not None:
                    raise KafkaException(each.error)

        if self.places is None:
            self._retrying("committed", committed)
        else:
            found = self._at_places(assigned)
        for each in found:
            each.offset = each.offset if each.offset >= 0 else self._reset
        self._next = {each.partition: each.offset for each in found if each.offset >= 0}
        if self._eager or self._fixed is not None:
            call("seek", lambda: self._consumer.assign(found))
        else:
            call("seek", lambda: self._consumer.incremental_unassign(assigned))
            call("seek", lambda: self._consumer.incremental_assign(found))

    def _at_places(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        places = self.places() if self.places is not None else {}
        return [TopicPartition(self._topic, each.partition, places.get(each.partition, 0)) for each in partitions]

    def close(self) -> None:
        """Leave the group and close the consumer."""
        if self._without_member is not None:
            self._without_member.close()
        call("close", self._consumer.close)

    def _source(self, message: Any) -> Source:
        header = b""
        if self._stage:
            header = next((value for name, value in message.headers() or () if name == HEADER), b"")
        return Source(
            partition=message.partition(),
            offset=message.offset(),
            key=message.key() or b"",
            value=message.value() or b"",
            header=header,
            stage=self._stage,
        )

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Collect assigned partitions; one poll may see several rebalances.

        With `places`, they are assigned there at once. Otherwise the client would ask for their committed offsets, and
        then for their first ones, and an answer that comes in after `rewind` would replace the position.
        """
        self._rebalanced = True
        self._assigned += [each.partition for each in partitions]
        if self.places is not None:
            found = self._at_places(partitions)
            call("seek", lambda: consumer.assign(found) if self._eager else consumer.incremental_assign(found))

    def _on_revoke(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._rebalanced = True
        revoked = {each.partition for each in partitions}
        self._assigned = [partition for partition in self._assigned if partition not in revoked]

    def _read_until(self, reader: Consumer, end: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield key and value of the records that the consumer reads until it is at the offset `end`."""
        deadline = time.monotonic() + self._patience_s
        while end > 0:
            for message in reader.consume(1000, timeout=_POLL_TIMEOUT_S):
                error = message.error()
                if error is None:
                    yield message.key() or b"", message.value() or b""
                elif error.code() == KafkaError._PARTITION_EOF and message.offset() >= end:
                    return
            if time.monotonic() > deadline:
                text = f"the changelog was not read up to its offset {end} in time"
                raise ClientError("restore", "_TIMED_OUT", abortable=False, fatal=True, text=text)

    def _retrying(self, name: str, function: Callable[[], object]) -> None:
        retrying(name, self._patience_s, function)
