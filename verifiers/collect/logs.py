"""The tables that are read from the brokers' logs: batches, committed offsets, and states of transactional ids."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from onceproof.harness.cluster.described import Partition
from onceproof.harness.context.context import FaultContext
from onceproof.harness.record.tables import COMMITS, STATES
from onceproof.verifiers.collect import commits, internal, owners, segments, states
from onceproof.verifiers.collect.pinned import pin
from onceproof.verifiers.collect.segments import Replica
from onceproof.verifiers.collect.written import write, write_rows

_STATES = "__transaction_state"
Step = tuple[str, Callable[[], int]]  # the name of a table, and what writes it and returns the number of its rows


def readable(context: FaultContext) -> bool:
    """Return whether the logs of the brokers of this system can be read."""
    return "log-access" in context.cluster.system.capabilities


def steps(
    spark: SparkSession, context: FaultContext, partitions: list[Partition], facts: dict[str, Any], tables: Path
) -> list[Step]:
    """Return the steps that read the logs, and add `internal` to the facts.

    The CRC of a batch is checked, except where nobody reads the topic (the input in ledger mode) and on the leaders of
    the topics that Kafka's own consumer reads, since it checks the CRC itself.
    """
    admin, logs, names = context.cluster.admin, context.cluster.log_dirs(), context.names
    offsets = sorted({admin.offsets_partition(group) for group in names.groups})
    coordinators = [(_STATES, number) for number in admin.partitions(_STATES)] if _STATES in admin.topics() else []
    facts["internal"] = pin(admin, [*offsets, *coordinators])
    leaders = {(each["leader"], (each["topic"], each["partition"])) for each in facts["partitions"]}
    middle = names.topics.get(names.intermediate_topic)

    def headers_only(broker: str, partition: Partition) -> bool:
        if facts["mode"] == "ledger" and partition[0] == names.input:
            return True
        return partition[0] != middle and (broker, partition) in leaders

    replicas = [
        Replica(
            topic=topic,
            partition=number,
            broker=broker,
            folder=folder / f"{topic}-{number}",
            crcs=not headers_only(broker, (topic, number)),
        )
        for broker, folder in sorted(logs.items())
        for topic, number in (*partitions, *offsets)
    ]
    read = {}
    for each in facts["internal"]:
        place = each["topic"], each["partition"]
        read[place] = logs[each["leader"] or each["replicas"][0]] / f"{place[0]}-{place[1]}"
        each["compacted"] = internal.compacted(read[place])

    def positions() -> Iterator[dict[str, Any]]:
        return (row for place in offsets for row in commits.read(read[place], place[1], groups=dict(names.read)))

    def commits_of() -> int:
        rows: Iterable[dict[str, Any]] = positions()
        if narrator := context.workers.narrator:
            rows = owners.of_commits(narrator, rows)
        return write_rows(rows, COMMITS, tables / "commits.parquet")

    def states_of() -> int:
        def everything() -> Iterator[dict[str, Any]]:
            return (row for place in coordinators for row in states.read(read[place], place[1]))

        committed = {row["producer_id"] for row in positions()}
        mine = states.of_run(everything, lambda topic: topic.startswith(f"{names.prefix}-"), committed)
        return write_rows(mine, STATES, tables / "states.parquet")

    return [
        ("batches", partial(write, segments.read(spark, replicas), tables / "batches.parquet")),
        ("commits", commits_of),
        ("states", states_of),
    ]
