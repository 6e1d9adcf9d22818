"""What every client library is asked for: the same few calls of a consumer (`Reader`) and of a producer (`Writer`).

The calls are those of the pipeline's loop, and each may raise ClientError, which says in the client's own words what
kind of error it is; the loop decides by kind alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from onceproof.harness.model.workload import Source


class ClientError(Exception):
    """A call of a Kafka client that failed.

    `abortable`: the transaction must be aborted, the producer lives on. `fatal`: the producer is no more (fenced by
    epoch, for one). Neither: the call ran out of its time.
    """

    def __init__(self, call: str, code: str, *, abortable: bool, fatal: bool, text: str = "") -> None:
        super().__init__(f"{call}: {code}: {text}")
        self.call, self.code, self.abortable, self.fatal, self.text = call, code, abortable, fatal, text

    def fields(self) -> dict[str, Any]:
        return {
            "call": self.call,
            "code": self.code,
            "abortable": self.abortable,
            "fatal": self.fatal,
            "text": self.text[:200],
        }


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Records of one poll, and for each partition the range [first, next) that they are.

    `resets`: positions that moved by themselves. `assigned`: partitions that the group gave to us inside this poll.
    """

    records: list[Source]
    ranges: Mapping[int, tuple[int, int]]
    resets: list[dict[str, int]] = field(default_factory=list)
    assigned: list[int] = field(default_factory=list)

    def parts(self) -> Iterator["Batch"]:
        """The batch by input partition."""
        for partition, span in self.ranges.items():
            mine = [record for record in self.records if record.partition == partition]
            yield Batch(records=mine, ranges={partition: span})


class Reader(Protocol):
    """The consumer of one worker, on one topic. Everything may raise ClientError."""

    def start(self) -> None: ...
    def poll(self) -> Batch: ...
    def group(self) -> object:
        """The group's metadata as of the last poll, for `Writer.send_offsets`."""
        ...

    def commit(self, ranges: Mapping[int, tuple[int, int]], metadata: str) -> None:
        """Commit the positions behind these ranges, outside of any transaction."""
        ...

    def assigned(self) -> list[int]:
        """The partitions that are ours."""
        ...

    def read_all(self, topic: str, partition: int) -> Iterator[tuple[bytes, bytes]]:
        """Key and value of every committed record of a partition, up to its high watermark at the call: it waits there
        until the transactions below it are decided."""
        ...

    def rewind(self) -> None:
        """Seek every partition back to the group's committed position: an abort does not."""
        ...

    def close(self) -> None: ...


class Writer(Protocol):
    """One producer. Everything may raise ClientError; without transactions begin, commit and abort do nothing."""

    def start(self) -> None: ...
    def begin(self) -> None: ...
    def send(self, topic: str, partition: int, key: bytes, value: bytes, header: bytes) -> None: ...
    def flush(self) -> dict[str, list[int]]:
        """Wait for every acknowledgement; `topic/partition` → [count, first offset, last offset], the offsets negative
        where the client was not told all of them."""
        ...

    def send_offsets(self, topic: str, ranges: Mapping[int, tuple[int, int]], metadata: str, group: object) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
