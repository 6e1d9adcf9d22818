"""Read what the transaction coordinators decided, from the segments of __transaction_state.

The coordinator of a transactional id appends a record for each change of its state. A record with the state
PrepareCommit or PrepareAbort is the decision about a transaction: markers with its producer epoch follow in each of its
partitions (KIP-98; with transaction version 2 that epoch is one above the epoch of the data, KIP-890).
"""

from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Any

from onceproof.verifiers.collect import internal

TOMBSTONE = "Tombstone"
# org.apache.kafka.coordinator.transaction.TransactionState
_STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)


def read(replica: Path, log: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table `states` for one replica of the partition `log` of __transaction_state.

    Raises ValueError when a segment is damaged, or a record has a state that is not known.
    """
    for record in internal.records(replica, "transactions"):
        value = record["value"]
        row = {"log": log, "offset": record["offset"], "transactional_id": record["key"]["transactionalId"]}
        if value is None:
            yield {**row, "state": TOMBSTONE, "partitions": []}
            continue
        if not 0 <= value["transactionStatus"] < len(_STATES):
            raise ValueError(f"{replica} offset {record['offset']}: unknown state {value['transactionStatus']}")
        yield {
            **row,
            "producer_id": value["producerId"],
            "producer_epoch": value["producerEpoch"],
            "state": _STATES[value["transactionStatus"]],
            "partitions": [
                f"{each['topic']}/{partition}"
                for each in value["transactionPartitions"] or ()
                for partition in each["partitionIds"]
            ],
            "version": value.get("clientTransactionVersion", 0),
        }


def of_run(
    read: Callable[[], Iterator[dict[str, Any]]], mine: Callable[[str], bool], producers: Container[int]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of those transactional ids that ever had a partition of a topic for which `mine` is true.

    Those whose producer id is in `producers`, which committed offsets of the run's groups, belong to it as well: a
    transaction need not have outputs. `read` reads all rows; it is called twice, so that they need not be in memory.
    """
    ids = {
        row["transactional_id"]
        for row in read()
        if row.get("producer_id") in producers or any(mine(place.rpartition("/")[0]) for place in row["partitions"])
    }
    yield from (row for row in read() if row["transactional_id"] in ids)
