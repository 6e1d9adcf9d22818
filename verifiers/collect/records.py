"""Read a run's inputs and outputs from their topics, with the columns of its tables.

The payload of onceproof's own workloads has the number of its input. An output of an application with a contract has an
id, which is the number of its input, or what the contract calls the id of an input. The ids of all inputs follow from
the load, so the log of the inputs is not needed.
"""

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from onceproof.harness.base.errors import WorkloadError
from onceproof.harness.cluster.described import Isolation
from onceproof.harness.context import databases
from onceproof.harness.context.context import FaultContext
from onceproof.harness.model.contract import NUMBER, Contract
from onceproof.harness.model.databases import OF_THE_RUN
from onceproof.harness.model.workload import CONTENT
from onceproof.harness.record.tables import LOAD
from onceproof.verifiers.collect import database, topics
from onceproof.verifiers.evidence.frames import rows


def read_inputs(spark: SparkSession, bootstrap: str, context: FaultContext, pinned: list[dict[str, Any]]) -> DataFrame:
    """Return the inputs in the pinned ranges, under read_committed, with the columns of tables/inputs.parquet."""
    work = context.plan.scenario.pipeline
    frame = topics.read(spark, bootstrap, context.names.input, pinned, "read_committed", named=NUMBER)
    if work.contract is not None:
        return frame.selectExpr("partition", "offset", "try_cast(cast(header AS string) AS bigint) AS number", "digest")
    key = ["xxhash64(key) AS grouping"] if work.aggregate else []
    return frame.selectExpr("partition", "offset", "number", "digest", *key)


def read_outputs(
    spark: SparkSession,
    bootstrap: str,
    context: FaultContext,
    pinned: list[dict[str, Any]],
    isolation: Isolation,
    ledger: Path,
) -> dict[str, DataFrame]:
    """Return the workload's own name of a topic → its outputs, in the pinned range of each partition.

    The columns are those of tables/outputs.parquet, without `topic`. `ledger` is the folder of the ledger.
    """
    work = context.plan.scenario.pipeline
    if contract := work.contract:
        frames = {
            role: topics.read(
                spark, bootstrap, context.names.topic(role), pinned, isolation, named=contract.header(role)
            )
            for role in work.judged
        }
        frames |= {role: database.read(spark, *place) for role, place in stored(context, ledger.parent).items()}
        return {role: _identified(frame, contract, role, ledger) for role, frame in frames.items()}
    whole = work.identity == CONTENT  # TopicSource has computed this digest
    identity = ["digest"] if whole else [f"{work.identity} AS digest", "digest AS content"]

    def totals(role: str) -> list[str]:
        if not (right := work.aggregate):
            return []
        total = right.state if right.state and role == work.changelog else right.total
        return [f"{total} AS total", "xxhash64(key) AS grouping"]

    url = databases.url(context.plan, context.cluster, ledger.parent)
    of_tables = {role: database.of_workers(spark, url, context.names.table(role)) for role in work.tables}
    return of_tables | {
        role: topics.read(
            spark, bootstrap, context.names.topic(role), pinned, isolation, intermediate=bool(work.intermediate_topic)
        ).selectExpr(
            "partition",
            "offset",
            "number",
            *identity,
            "told_0",
            "told_1",
            *(["told_2"] if work.intermediate_topic else []),
            *totals(role),
        )
        for role in work.judged
    }


def positions(spark: SparkSession, context: FaultContext, folder: Path) -> dict[int, int]:
    """Return the positions that workers keep in a database: input partition → offset. `folder` is the run folder."""
    url = databases.url(context.plan, context.cluster, folder)
    return database.positions(spark, url, context.names.table("positions"))


def stored(context: FaultContext, folder: Path) -> dict[str, tuple[str, str]]:
    """Return the tables of databases that an application writes: the workload's own name → JDBC URL, name.

    `folder` is the run folder.
    """
    contract = context.plan.scenario.pipeline.contract
    own = databases.url(context.plan, context.cluster, folder)
    urls = {} if contract is None else contract.databases
    return {role: (own if url == OF_THE_RUN else url, context.names.table(role)) for role, url in urls.items()}


def _identified(frame: DataFrame, contract: Contract, topic: str, ledger: Path) -> DataFrame:
    """Return the outputs of a topic with the columns of tables/outputs.parquet.

    `number` is null if no input has the output's id. Raises WorkloadError when two inputs have the same id.
    """
    columns = ["partition", "offset", "0L AS digest", "digest AS content", "told_0", "told_1"]
    columns += ["key", "value", "header"] if contract.model else []
    told = contract.ids.get(topic)
    if told is None:
        return frame.selectExpr(*columns, "cast(NULL AS bigint) AS number")
    if not contract.id:
        return frame.selectExpr(*columns, f"try_cast({told.sql} AS bigint) AS number")
    known = _known(frame.sparkSession, contract.id, ledger)
    return (
        frame.selectExpr(*columns, f"cast({told.sql} AS string) AS id")
        .join(F.broadcast(known), "id", "left")
        .drop("id")
    )


def _known(spark: SparkSession, sql: str, ledger: Path) -> DataFrame:
    """Return the number and the id of each input."""
    load = spark.read.schema(LOAD.spark).parquet(str(ledger.absolute() / "load-*.parquet"))
    known = load.selectExpr("number", f"cast({sql} AS string) AS id").where("id IS NOT NULL")
    twice = rows(known.groupBy("id").agg(F.count("*").alias("n")).where("n > 1").limit(1))
    if twice:
        raise WorkloadError(f"load.id: {twice[0]['n']} inputs have the id {twice[0]['id']!r:.80}; allowed: one id each")
    return known
