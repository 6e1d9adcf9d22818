"""What the Admin client tells of partitions, transactions and the members of groups."""

from dataclasses import dataclass
from typing import Literal

Partition = tuple[str, int]
Isolation = Literal["read_committed", "read_uncommitted"]
# The states of a transactional id in which its transaction has not completed, as Kafka spells them.
OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")


@dataclass(frozen=True, kw_only=True)
class PartitionState:
    """A partition's leader (None while it has none), replicas and in-sync replicas, as Kafka node ids."""

    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Transaction:
    """The coordinator's description of a transactional id (DescribeTransactions, KIP-664).

    `coordinator` is a Kafka node id, and `state` is as Kafka spells it (Ongoing, PrepareCommit, …).
    """

    transactional_id: str
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[Partition, ...]

    @property
    def open(self) -> bool:
        """Whether the transaction has not completed."""
        return self.state in OPEN_STATES


@dataclass(frozen=True, kw_only=True)
class OpenProducer:
    """A producer with an open transaction in a partition, as the partition's leader reports it.

    `start_offset` is the offset of the transaction's first record in the partition.
    """

    partition: Partition
    producer_id: int
    producer_epoch: int
    start_offset: int


@dataclass(frozen=True, kw_only=True)
class Member:
    """A member of a consumer group, and the partitions that are assigned to it."""

    member_id: str
    client_id: str
    partitions: tuple[Partition, ...]
