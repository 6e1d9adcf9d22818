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
import logging
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from onceproof.harness.cluster import standalone
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.settled import judged
from onceproof.harness.record import collected, manifest
from onceproof.harness.record.tables import OUTPUTS, SCHEMA_VERSION
from onceproof.verifiers.collect import logs, owners
from onceproof.verifiers.collect.logs import Step
from onceproof.verifiers.collect.pinned import pin
from onceproof.verifiers.collect.records import read_inputs, read_outputs
from onceproof.verifiers.collect.standing import standing
from onceproof.verifiers.collect.written import write
from onceproof.verifiers.evidence import executors, reading
from onceproof.verifiers.evidence import master as masters
from onceproof.verifiers.evidence.spark import adapt, killed_when_interrupted, lives, session
from onceproof.verifiers.evidence.tables import PLACE, SMALL
from onceproof.verifiers.evidence.time_limit import Overdue, Watch, limit_s

_log = logging.getLogger(__name__)


def collect(
    context: FaultContext,
    folder: Path,
    *,
    mode: str = "full",
    master: str = "local[2]",
    say: Callable[[str], None] | None = None,
) -> None:
    """Fill `folder`/tables and write its manifest. `mode` is "full" or "ledger".

    `say` is told how many records have been read, every two seconds. If Spark's process ends meanwhile, it is started
    again once; tables that are whole are kept. Raises HarnessError when the cluster does not answer or an executor
    cannot do the work, ValueError when a segment has an unknown layout, and whatever Spark raises when it cannot read a
    topic.
    """
    admin, partitions = context.cluster.admin, judged(context)
    pinned = pin(admin, partitions)
    records = sum(each["end"] - each["start"] for each in pinned)
    spark = session(master, records=records)
    adapt(spark, rows=0, few=records <= SMALL)
    if masters.elsewhere(master):
        executors.check_folder(spark, folder.resolve())
        if logs.readable(context):
            executors.check_reads(spark, context.cluster.folder)
    tables = folder.resolve() / "tables"
    tables.mkdir()
    facts: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "mode": mode, "partitions": pinned}
    facts |= standing(spark, context, folder, partitions)
    with standalone.reaching(master, context.cluster) as bootstrap:
        fill = partial(_fill, context, folder, facts, bootstrap, say)
        try:
            counts = fill(spark)
        except Overdue:
            raise
        except Exception:
            if lives(spark):
                raise
            _log.warning("Spark's process ended while the topics were read; it is started again")
            counts = fill(session(master, records=records))
    moved = [
        f"{old['topic']}/{old['partition']}: {name} {old[name]} → {new[name]}"
        for old, new in zip(facts["partitions"], pin(admin, partitions), strict=True)
        for name in ("start", "end", "high_watermark")
        if old[name] != new[name]
    ]
    (tables / "collect.json").write_text(json.dumps({**facts, "moved": moved, "rows": counts}, indent=1) + "\n")
    manifest.seal(folder)


def _fill(
    context: FaultContext,
    folder: Path,
    facts: dict[str, Any],
    bootstrap: str,
    say: Callable[[str], None] | None,
    spark: SparkSession,
) -> Counter[str]:
    """Write the tables, and return the number of rows of each."""

    def done() -> Counter[str]:
        with killed_when_interrupted():
            counts, work = _steps(context, folder, facts, bootstrap, spark)
            # One table is planned or finished while another one is read.
            with ThreadPoolExecutor(len(work)) as threads:
                for (name, _), count in zip(work, threads.map(lambda each: each[1](), work), strict=True):
                    counts[name] += count
        return counts

    pinned: list[dict[str, Any]] = facts["partitions"]
    read = [each for each in pinned if facts["mode"] == "full" or each["topic"] != context.names.input]
    total = sum(each["end"] - each["start"] for each in read)
    with Watch(spark, limit_s=_limit_s(context, pinned), again=False) as watch, reading.told(spark, say, total=total):
        return watch.run("collecting the topics", done)


def _steps(
    context: FaultContext, folder: Path, facts: dict[str, Any], bootstrap: str, spark: SparkSession
) -> tuple[Counter[str], Sequence[Step]]:
    """Return the numbers of rows of the tables that had to be written first, and what writes the others."""
    pinned, full, tables = facts["partitions"], facts["mode"] == "full", folder.resolve() / "tables"
    counts: Counter[str] = Counter()
    work: list[Step] = []
    if logs.readable(context):
        work = logs.steps(spark, context, judged(context), facts, tables)
    outputs = read_outputs(spark, bootstrap, context, pinned, "read_committed", folder / "ledger")
    inputs = partial(read_inputs, spark, bootstrap, context, pinned)
    if narrator := context.workers.narrator:
        counts["batches"] = dict(work)["batches"]()
        work = [each for each in work if each[0] != "batches"]  # speed: they have been written
        places = owners.places(spark, folder / "ledger", inputs)
        senders = owners.ranges(narrator, tables / "batches.parquet", pinned)
        outputs = {
            role: owners.named(spark, frame, senders.get(context.names.topic(role), []), places)
            for role, frame in outputs.items()
        }
    work = [
        *(
            ("outputs", partial(write, frame, tables / f"outputs.parquet/topic={role}"))
            for role, frame in outputs.items()
        ),
        *work,
    ]
    if full:
        work.append(("inputs", partial(write, inputs(), tables / "inputs.parquet")))
    if context.plan.scenario.collect.requests or narrator:
        topics = context.cluster.admin.topic_names
        work.append(("requests", lambda: context.requests.write(tables / "requests.parquet", topics())))
    return counts, work


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
                watch.run("reading the hidden records", partial(write, hidden, target))
            manifest.add(folder.resolve(), target)
        except Exception:
            shutil.rmtree(target, ignore_errors=True)
            raise


def _limit_s(context: FaultContext, pinned: list[dict[str, Any]]) -> float:
    """Return the limit for reading the topics, in seconds: that of the checks, and a second for each megabyte."""
    records: int = sum(max(0, each["high_watermark"] - each["start"]) for each in pinned)
    return limit_s(records, read_bytes=records * context.plan.scenario.workload.record_bytes)
