"""Collect: the topics, as they are at pinned offsets, into tables that stay in the run's folder.

    tables/inputs.parquet      partition offset number digest                        read by Spark, read_committed
    tables/outputs.parquet     a folder for each topic, topic=<the workload's name for it>, so that no row has to say
                               it: partition offset number digest, and the header's word as integers, told_0 and
                               told_1 (null where it has no such header), told_2 behind a topic between; content (of
                               all of it, where digest is of a part), total and grouping (of an
                              aggregate): columns that are there only when the workload needs them
    tables/batches.parquet     batch headers of every replica, from the segments
    tables/hidden.parquet      outputs that a read_committed reader does not see; only when they are asked for
    tables/commits.parquet     the positions that the group committed, in the order of the log
    tables/collect.json        mode, pinned starts and ends, LSO, the group's positions, open transactions, row counts;
                              and how many records the group's log has lost to compaction, all groups' together
    manifest.json              size and hash of all of these, of the ledger, and of the history so far

`number` is the payload's own word about which input it comes from; what the header says must agree with it. Ends are
read again afterwards; an end that moved makes the verdict `unknown`, since somebody still wrote.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from onceproof.harness.base.deadlines import until
from onceproof.harness.cluster import topology
from onceproof.harness.cluster.admin import OPEN_STATES, Admin, Isolation, Partition
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.settled import judged
from onceproof.harness.model import registry
from onceproof.harness.model.workload import CONTENT
from onceproof.harness.record import documents, manifest
from onceproof.harness.record.tables import OUTPUTS, SCHEMA_VERSION
from onceproof.verifiers.collect import commits, segments, topics
from onceproof.verifiers.evidence.spark import session
from onceproof.verifiers.evidence.tables import PLACE

_TOLD_DEADLINE_S = 20.0
# Pages of the second version keep offsets and numbers as differences, in a fraction of the bytes, so that compressing
# them gives nothing; and a dictionary of values that differ is built, and read, for nothing.
_PARQUET_OPTIONS = {
    "parquet.writer.version": "PARQUET_2_0",
    "parquet.enable.dictionary": "false",
    "compression": "uncompressed",
}


def collect(context: FaultContext, folder: Path, *, mode: str = "full", master: str = "local[2]") -> None:
    """Fill `folder`/tables. Raises HarnessError when the cluster does not answer, ValueError when a segment is not what
    it should be, or whatever Spark raises when it cannot read."""
    tables = folder.resolve() / "tables"
    tables.mkdir()
    admin, spark = context.cluster.admin, session(master)
    partitions = judged(context)
    pinned = pin(admin, partitions)
    facts = {"schema_version": SCHEMA_VERSION, "mode": mode, "partitions": pinned, **_standing(context, partitions)}
    bootstrap = context.cluster.bootstrap(topology.OBSERVER_LANE)
    work: list[tuple[str, Callable[[], int]]] = [
        ("outputs", partial(_write, outputs, tables / "outputs.parquet" / f"topic={role}"))
        for role, outputs in read_outputs(spark, bootstrap, context, pinned, "read_committed").items()
    ]
    if mode == "full":
        inputs = read_inputs(spark, bootstrap, context.names.input, pinned)
        work.append(("inputs", partial(_write, inputs, tables / "inputs.parquet")))
    if "log-access" in context.cluster.system.capabilities:
        internal = admin.offsets_partition(context.names.group)
        logs = context.cluster.log_dirs()
        leader = topology.node_of(admin.partitions(internal[0])[internal[1]].leader or 1)
        group_log = logs[leader] / f"{internal[0]}-{internal[1]}"
        held = segments.replica(group_log)
        facts["compacted"] = segments.compacted(held)
        batches = partial(segments.write_batches, logs, [*partitions, internal], tables / "batches.parquet")
        committed = partial(
            commits.write_commits,
            group_log,
            held,
            context.names.group,
            context.names.input,
            tables / "commits.parquet",
        )
        work += [("batches", batches), ("commits", committed)]
    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(len(work)) as threads:  # one plans, or waits for its last task, while another reads
        for (name, _), count in zip(work, threads.map(lambda each: each[1](), work), strict=True):
            counts[name] += count
    after = pin(admin, partitions)
    moved = [
        f"{old['topic']}/{old['partition']}: {old['end']} → {new['end']}"
        for old, new in zip(pinned, after, strict=True)
        if (old["start"], old["end"]) != (new["start"], new["end"])
    ]
    (tables / "collect.json").write_text(json.dumps({**facts, "moved": moved, "rows": counts}, indent=1) + "\n")
    manifest.seal(folder)


def collect_hidden(context: FaultContext, folder: Path, *, master: str = "local[2]") -> None:
    """Add tables/hidden.parquet to a collected folder. Raises as `collect` does; then the folder is as it was."""
    facts = documents.read(folder / "tables" / "collect.json", schema_version=SCHEMA_VERSION, missing="collect first")
    pinned = [{**each, "end": each["high_watermark"]} for each in facts["partitions"]]
    spark, target = session(master), folder.resolve() / "tables" / "hidden.parquet"
    frames = read_outputs(spark, context.cluster.bootstrap(topology.OBSERVER_LANE), context, pinned, "read_uncommitted")
    named = (frame.withColumn("topic", F.lit(role)) for role, frame in frames.items())
    everything = reduce(DataFrame.unionByName, named)
    seen = spark.read.schema(OUTPUTS.spark).parquet(str(target.with_name("outputs.parquet"))).select(*PLACE)
    try:
        _write(everything.join(seen, PLACE, "left_anti"), target)
        manifest.add(folder.resolve(), target)
    except Exception:
        shutil.rmtree(target, ignore_errors=True)
        raise


def pin(admin: Admin, partitions: list[Partition]) -> list[dict[str, Any]]:
    """Start, end (the LSO), high watermark, leader and replicas of each partition, as they are now."""
    starts = admin.offsets(partitions, "earliest", "read_uncommitted")
    high = admin.offsets(partitions, "latest", "read_uncommitted")
    stable = admin.offsets(partitions, "latest", "read_committed")
    states = {topic: admin.partitions(topic) for topic in {topic for topic, _ in partitions}}
    return [
        {
            "topic": topic,
            "partition": partition,
            "start": starts[topic, partition],
            "end": stable[topic, partition],
            "high_watermark": high[topic, partition],
            "leader": _leader(states[topic][partition].leader),
            "replicas": sorted(map(topology.node_of, states[topic][partition].replicas)),
        }
        for topic, partition in partitions
    ]


def _leader(node: int | None) -> str | None:
    return None if node is None else topology.node_of(node)


def _standing(context: FaultContext, partitions: list[Partition]) -> dict[str, Any]:
    """Committed positions, and transactions that are still open with what their coordinators say of them."""
    admin = context.cluster.admin
    commits = [
        {"partition": partition, "offset": offset, "metadata": metadata}
        for (topic, partition), (offset, metadata) in sorted(admin.group_offsets(context.names.group).items())
        if topic == context.names.input
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
        context.cluster.used_up = True  # no later run on this cluster could tell that it is not its own
    return {"positions": commits, "open_transactions": open_transactions}


def _known(admin: Admin) -> dict[tuple[int, Partition], str]:
    """Producer id and partition → transactional id, of all transactions that a coordinator still has to end, whoever's.
    The epoch says nothing: while markers are on their way the coordinator has the next one already (KIP-890). Kafka's
    own search for hanging transactions compares the same two (KIP-664)."""
    known: dict[tuple[int, Partition], str] = {}
    for name, state in admin.transactional_ids("").items():
        if state in OPEN_STATES:
            told = until(f"the coordinator of {name}", partial(admin.transaction, name), deadline_s=_TOLD_DEADLINE_S)
            known |= {(told.producer_id, partition): name for partition in told.partitions if told.open}
    return known


def read_inputs(spark: SparkSession, bootstrap: str, topic: str, pinned: list[dict[str, Any]]) -> DataFrame:
    frame = topics.read(spark, bootstrap, topic, pinned, "read_committed")
    return frame.selectExpr("partition", "offset", "number", "digest")


def read_outputs(
    spark: SparkSession, bootstrap: str, context: FaultContext, pinned: list[dict[str, Any]], isolation: Isolation
) -> dict[str, DataFrame]:
    """The workload's own name of a topic → its outputs."""
    work = registry.workload(context.plan.scenario.workload.name)
    identity, apart = work.identity, {"digest": "content"}
    if identity == CONTENT:  # the source has made that
        identity, apart = "digest", {}
    if work.aggregate:
        apart |= {work.aggregate.total: "total", "xxhash64(key)": "grouping"}
    return {
        role: topics.read(
            spark, bootstrap, context.names.topic(role), pinned, isolation, intermediate=bool(work.intermediate_topic)
        ).selectExpr(
            "partition",
            "offset",
            "number",
            f"{identity} AS digest",
            "told_0",
            "told_1",
            *(["told_2"] if work.intermediate_topic else []),
            *(f"{sql} AS {name}" for sql, name in apart.items()),
        )
        for role in work.judged
    }


def _write(frame: DataFrame, target: Path) -> int:
    frame.write.options(**_PARQUET_OPTIONS).parquet(str(target))
    return sum(pq.read_metadata(part).num_rows for part in target.glob("*.parquet"))
