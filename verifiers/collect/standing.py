"""Where a run stands when it is at rest: the committed offsets, and the transactions that are still open."""

from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from onceproof.harness.base.deadlines import until
from onceproof.harness.cluster.admin import Admin
from onceproof.harness.cluster.described import OPEN_STATES, Partition
from onceproof.harness.context.context import FaultContext
from onceproof.verifiers.collect import records

_TOLD_DEADLINE_S = 20.0


def standing(spark: SparkSession, context: FaultContext, folder: Path, partitions: list[Partition]) -> dict[str, Any]:
    """Return the committed offsets, and the open transactions with what their coordinators know of them.

    The offsets are those of the groups, or those in the database.
    """
    admin = context.cluster.admin
    commits = [
        {"topic": topic, "partition": partition, "offset": offset, "metadata": metadata}
        for group, read in context.names.read
        for (topic, partition), (offset, metadata) in sorted(admin.group_offsets(group).items())
        if topic == read
    ]
    if context.plan.scenario.pipeline.in_database:
        commits = [
            {"topic": context.names.input, "partition": partition, "offset": offset, "metadata": ""}
            for partition, offset in sorted(records.positions(spark, context, folder).items())
        ]
    if "transaction-state" not in context.cluster.system.capabilities:
        return {"positions": commits, "open_transactions": None}
    known = _known(admin)
    open_transactions = [
        {
            "topic": each.partition[0],
            "partition": each.partition[1],
            "producer_id": each.producer_id,
            "producer_epoch": each.producer_epoch,
            "start_offset": each.start_offset,
            "known_as": known.get((each.producer_id, each.partition)),
        }
        for each in admin.open_producers([*partitions, *map(admin.offsets_partition, context.names.groups)])
    ]
    if any(each["known_as"] is None for each in open_transactions):
        context.cluster.used_up = True  # a later run on this cluster would report the hung transaction as its own
    return {"positions": commits, "open_transactions": open_transactions}


def _known(admin: Admin) -> dict[tuple[int, Partition], str]:
    """Return (producer id, partition) → transactional id, for every transaction that any coordinator still has to end.

    The epoch is not compared, since the coordinator already has the next one while markers are being written
    (KIP-890). Kafka's own search for hanging transactions compares the same two values (KIP-664).
    """
    known: dict[tuple[int, Partition], str] = {}
    for name, state in admin.transactional_ids("").items():
        if state in OPEN_STATES:  # speed: the answer for any other one is that it is not open
            told = until(f"the coordinator of {name}", partial(admin.transaction, name), deadline_s=_TOLD_DEADLINE_S)
            known |= {(told.producer_id, partition): name for partition in told.partitions if told.open}
    return known
