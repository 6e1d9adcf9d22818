"""The interface of a Kafka client: the calls of a consumer (`Reader`) and of a producer (`Writer`) in a worker's loop.

Each call may raise ClientError, which has the client's own name of the error, and whether the error is abortable or
fatal. The loop depends on the latter only.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from onceproof.harness.model.workload import Source


class ClientError(Exception):
    """A call of a Kafka client failed.

    - `call`: the call, such as `commit`.
    - `code`: the client's own name of the error, such as `PRODUCER_FENCED`.
    - `abortable`: whether the transaction must be aborted and the producer can be used again.
    - `fatal`: whether the producer cannot be used again, as when it was fenced by epoch. An error that is neither
      abortable nor fatal is a call that ran out of time.
    - `text`: the client's message.
    """

    def __init__(self, call: str, code: str, *, abortable: bool, fatal: bool, text: str = "") -> None:
        super().__init__(f"{call}: {code}: {text}")
        self.call, self.code, self.abortable, self.fatal, self.text = call, code, abortable, fatal, text

    def fields(self) -> dict[str, Any]:
        """Return the error as fields of an event."""
        return {
            "call": self.call,
            "code": self.code,
            "abortable": self.abortable,
            "fatal": self.fatal,
            "text": self.text,
        }


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The records of one poll.

    - `ranges`: for each input partition, the range [first, next) of offsets that they cover.
    - `resets`: `partition`, `expected` and `found` offset where a partition did not continue at the expected offset.
    - `assigned`: the partitions that the group assigned during this poll; the batch then has no records.
    """

    records: list[Source]
    ranges: Mapping[int, tuple[int, int]]
    resets: list[dict[str, int]] = field(default_factory=list)
    assigned: list[int] = field(default_factory=list)

    def parts(self) -> Iterator["Batch"]:
        """Yield one batch for each input partition, in the order of `ranges`."""
        for partition, span in self.ranges.items():
            records = [record for record in self.records if record.partition == partition]
            yield Batch(records=records, ranges={partition: span})


class Reader(Protocol):
    """The consumer of one worker, on one topic. Every method may raise ClientError.

    If `places` is set, partitions continue at the offsets that it returns instead of their committed offsets, and at
    the first offset if it returns none.
    """

    places: Callable[[], Mapping[int, int]] | None

    def start(self) -> None:
        """Subscribe to the topic, or assign the partitions that the configuration fixes."""
        ...

    def poll(self) -> Batch:
        """Return the next records, at most one transaction's, or an empty batch after 100 ms.

        After a rebalance, the batch has no records, and every partition continues at its committed offset.
        """
        ...

    def group(self) -> object:
        """Return the group's metadata as of the last poll, for `Writer.send_offsets`."""
        ...

    def commit(self, ranges: Mapping[int, tuple[int, int]], metadata: str) -> None:
        """Commit the offsets that follow these ranges, outside of any transaction."""
        ...

    def assigned(self) -> list[int]:
        """Return the partitions that are assigned to this consumer."""
        ...

    def read_all(self, topic: str, partition: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield key and value of each committed record of a partition, up to its high watermark at the call.

        Where transactions below the high watermark are still open, this waits until they are decided.
        """
        ...

    def rewind(self) -> None:
        """Seek each assigned partition to its committed offset, which an abort does not do."""
        ...

    def close(self) -> None:
        """Leave the group and close the consumer."""
        ...


class Writer(Protocol):
    """One producer. Every method may raise ClientError; without transactions begin, commit and abort do nothing."""

    def start(self) -> None:
        """Initialise the transactional id (InitProducerId), if there is one."""
        ...

    def begin(self) -> None:
        """Begin a transaction, and forget the acknowledgements of the previous one."""
        ...

    def send(self, topic: str, partition: int, key: bytes, value: bytes, header: bytes) -> None:
        """Send a record with the provenance header `header`, without waiting for its acknowledgement."""
        ...

    def flush(self) -> dict[str, list[int]]:
        """Wait for all acknowledgements: `topic/partition` → [count, first offset, last offset].

        The offsets are negative where a record was acknowledged without its offset.
        """
        ...

    def send_offsets(self, topic: str, ranges: Mapping[int, tuple[int, int]], metadata: str, group: object) -> None:
        """Add the offsets that follow these ranges to the transaction (TxnOffsetCommit, KIP-447)."""
        ...

    def commit(self) -> None:
        """Commit the transaction."""
        ...

    def abort(self) -> None:
        """Abort the transaction."""
        ...
