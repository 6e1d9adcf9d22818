"""Copy the topics, at pinned offsets, into tables that stay in the run's folder.

    tables/inputs.parquet      partition offset number digest: the input topic under read_committed; full proof only;
                               and, if the pipeline has an aggregate, the hash of the key (grouping)
    tables/outputs.parquet     one folder for each topic, topic=<the workload's name of it>: partition offset number
                               digest; the provenance header as integers, told_0 and told_1 (null if there is no such
                               header); and, only if the workload needs them, told_2 (of a chain), content (the digest
                               of the whole record, if `digest` covers a part of it), total and grouping (of an
                               aggregate)
    tables/batches.parquet     batch headers of every replica, from the segments
    tables/hidden.parquet      outputs that a read_committed reader does not see; only if they are asked for
    tables/commits.parquet     the offsets that the groups committed, in the order of the log
    tables/states.parquet      the states of the run's transactional ids, in the order of the coordinators' logs
    tables/requests.parquet    the requests of the workers' clients (`harness/context/journal.py`); only if the scenario
                               asks for them
    tables/collect.json        mode, pinned starts, ends and ISRs, the groups' committed offsets, open transactions, row
                               counts, and `internal`: for each partition of __consumer_offsets and __transaction_state
                               that was read, its LSO and high watermark, its first offset, and how many of its records
                               compaction has removed, over all groups and transactional ids
    manifest.json              size and hash of all of these files, of the ledger, and of the history so far

`number` is the input's number as the output's payload gives it; the header must agree with it. Starts and ends are
read again afterwards; if one has moved, a client still wrote, and the verdict is `unknown`.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from onceproof.harness.base.deadlines import until
from onceproof.harness.cluster import standalone
from onceproof.harness.cluster.admin import Admin
from onceproof.harness.cluster.described import OPEN_STATES, Partition
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.settled import judged
from onceproof.harness.record import collected, manifest
from onceproof.harness.record.tables import COMMITS, OUTPUTS, SCHEMA_VERSION, STATES, Table
from onceproof.verifiers.collect import commits, internal, owners, records, segments, states
from onceproof.verifiers.collect.pinned import pin
from onceproof.verifiers.collect.records import read_inputs, read_outputs
from onceproof.verifiers.collect.segments import Replica
from onceproof.verifiers.evidence import executors, reading
from onceproof.verifiers.evidence import master as masters
from onceproof.verifiers.evidence.spark import killed_when_interrupted, session
from onceproof.verifiers.evidence.tables import PLACE
from onceproof.verifiers.evidence.time_limit import Watch, limit_s

_TOLD_DEADLINE_S = 20.0
_STATES = "__transaction_state"
_ROWS_AT_ONCE = 20_000
_BYTES_PER_S = 1_000_000  # two cores collect a hundred times as many
# Version 2 pages store offsets and numbers as differences, in so few bytes that compression gains nothing. A dictionary
# of values that are all different costs time and gains nothing either.
_PARQUET_OPTIONS = {
    "parquet.writer.version": "PARQUET_2_0",
    "parquet.enable.dictionary": "false",
    "compression": "uncompressed",
}


def collect(
    context: FaultContext,
    folder: Path,
    *,
    mode: str = "full",
    master: str = "local[2]",
    say: Callable[[str], None] | None = None,
) -> None:
    """Fill `folder`/tables and write its manifest. `mode` is "full" or "ledger".

    `say` is told how many records have been read, every two seconds. Raises HarnessError when the cluster does not
    answer or an executor cannot do the work, ValueError when a segment has an unknown layout, and whatever Spark raises
    when it cannot read a topic.
    """
    spark = session(master)
    if masters.elsewhere(master):
        executors.check_folder(spark, folder.resolve())
        executors.check_reads(spark, context.cluster.folder)
    with standalone.reaching(master, context.cluster) as bootstrap:
        _collect(context, folder, mode, spark, bootstrap, say)


def _collect(
    context: FaultContext,
    folder: Path,
    mode: str,
    spark: SparkSession,
    bootstrap: str,
    say: Callable[[str], None] | None,
) -> None:
    tables = folder.resolve() / "tables"
    tables.mkdir()
    admin, partitions = context.cluster.admin, judged(context)
    pinned = pin(admin, partitions)
    facts = {
        "schema_version": SCHEMA_VERSION,
        "mode": mode,
        "partitions": pinned,
        **_standing(spark, context, folder, partitions),
    }
    counts: Counter[str] = Counter()
    logs = "log-access" in context.cluster.system.capabilities
    log = _of_log(spark, context, partitions, facts, tables) if logs else []
    outputs = read_outputs(spark, bootstrap, context, pinned, "read_committed", folder / "ledger")
    inputs = partial(read_inputs, spark, bootstrap, context, pinned)
    if narrator := context.workers.narrator:
        counts["batches"] = dict(log)["batches"]()
        log = [each for each in log if each[0] != "batches"]  # speed: they have been written
        places = owners.places(spark, folder / "ledger", inputs() if mode == "full" else None)
        senders = owners.ranges(narrator, tables / "batches.parquet", pinned)
        outputs = {
            role: owners.named(spark, frame, senders.get(context.names.topic(role), []), places)
            for role, frame in outputs.items()
        }
    work: list[tuple[str, Callable[[], int]]] = [
        ("outputs", partial(_write, frame, tables / "outputs.parquet" / f"topic={role}"))
        for role, frame in outputs.items()
    ]
    work += log
    if mode == "full":
        work.append(("inputs", partial(_write, inputs(), tables / "inputs.parquet")))
    if context.plan.scenario.collect.requests or narrator:
        work.append(("requests", lambda: context.requests.write(tables / "requests.parquet", admin.topic_names())))

    def fill() -> None:
        # One table is planned or finished while another one is read.
        with ThreadPoolExecutor(len(work)) as threads, killed_when_interrupted():
            for (name, _), count in zip(work, threads.map(lambda each: each[1](), work), strict=True):
                counts[name] += count

    read = [each for each in pinned if mode == "full" or each["topic"] != context.names.input]
    total = sum(each["end"] - each["start"] for each in read)
    with Watch(spark, limit_s=_limit_s(context, pinned), again=False) as watch, reading.told(spark, say, total=total):
        watch.run("collecting the topics", fill)
    after = pin(admin, partitions)
    moved = [
        f"{old['topic']}/{old['partition']}: {name} {old[name]} → {new[name]}"
        for old, new in zip(pinned, after, strict=True)
        for name in ("start", "end", "high_watermark")
        if old[name] != new[name]
    ]
    (tables / "collect.json").write_text(json.dumps({**facts, "moved": moved, "rows": counts}, indent=1) + "\n")
    manifest.seal(folder)


def _of_log(
    spark: SparkSession, context: FaultContext, partitions: list[Partition], facts: dict[str, Any], tables: Path
) -> list[tuple[str, Callable[[], int]]]:
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

    def commits_of() -> int:
        rows: Iterable[dict[str, Any]] = chain.from_iterable(
            commits.read(read[place], place[1], groups=dict(names.read)) for place in offsets
        )
        if narrator := context.workers.narrator:
            rows = owners.of_commits(narrator, rows)
        return _write_rows(rows, COMMITS, tables / "commits.parquet")

    def states_of() -> int:
        def everything() -> Iterator[dict[str, Any]]:
            return (row for place in coordinators for row in states.read(read[place], place[1]))

        mine = states.of_run(everything, lambda topic: topic in names.topics.values())
        return _write_rows(mine, STATES, tables / "states.parquet")

    return [
        ("batches", partial(_write, segments.read(spark, replicas), tables / "batches.parquet")),
        ("commits", commits_of),
        ("states", states_of),
    ]


def _write_rows(rows: Iterable[Mapping[str, Any]], table: Table, target: Path) -> int:
    """Write rows as a Parquet file, some thousands at a time; return their number."""
    count, left = 0, iter(rows)
    with pq.ParquetWriter(target, table.arrow) as writer:
        while some := list(islice(left, _ROWS_AT_ONCE)):
            writer.write_table(pa.Table.from_pylist(some, table.arrow))
            count += len(some)
    return count


def collect_hidden(context: FaultContext, folder: Path, *, master: str = "local[2]") -> None:
    """Add tables/hidden.parquet to a collected folder. If it raises, as `collect` does, the folder is unchanged."""
    known = collected.read(folder, missing="collect first")
    pinned = [{**each, "end": each["high_watermark"]} for each in known["partitions"]]
    spark, target = session(master), folder.resolve() / "tables" / "hidden.parquet"
    seen = spark.read.schema(OUTPUTS.spark).parquet(str(target.with_name("outputs.parquet"))).select(*PLACE)
    with standalone.reaching(master, context.cluster) as bootstrap:
        frames = read_outputs(spark, bootstrap, context, pinned, "read_uncommitted", folder / "ledger")
        named = (frame.withColumn("topic", F.lit(role)) for role, frame in frames.items())
        hidden = reduce(DataFrame.unionByName, named).join(seen, PLACE, "left_anti")
        try:
            with Watch(spark, limit_s=_limit_s(context, pinned), again=False) as watch:
                watch.run("reading the hidden records", lambda: _write(hidden, target))
            manifest.add(folder.resolve(), target)
        except Exception:
            shutil.rmtree(target, ignore_errors=True)
            raise


def _limit_s(context: FaultContext, pinned: list[dict[str, Any]]) -> float:
    """Return the limit for reading the topics, in seconds: that of the checks, and a second for each megabyte."""
    records: int = sum(max(0, each["high_watermark"] - each["start"]) for each in pinned)
    return limit_s(records) + records * context.plan.scenario.workload.record_bytes / _BYTES_PER_S


def _standing(spark: SparkSession, context: FaultContext, folder: Path, partitions: list[Partition]) -> dict[str, Any]:
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


def _write(frame: DataFrame, target: Path) -> int:
    """Write a frame as Parquet files into the folder `target`; return the number of rows."""
    frame.write.options(**_PARQUET_OPTIONS).parquet(str(target))
    return sum(pq.read_metadata(part).num_rows for part in target.glob("*.parquet"))
