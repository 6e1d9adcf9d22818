"""A session that gives many verdicts frees what each of them took, and a large run does not fill its memory."""

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from onceproof.harness.model import plan
from onceproof.harness.record import history
from onceproof.verifiers.evidence.spark import let_go
from onceproof.verifiers.evidence.tables import Tables
from tests.unit.good_run import GoodRun


def test_a_persisted_frame_does_not_clone_the_session(spark: SparkSession) -> None:
    """Spark keeps each clone for ever."""
    frame = spark.range(3).selectExpr("id + 1 AS kept").persist()
    own: Any = spark._jsparkSession
    relation = frame._jdf.queryExecution().withCachedData()
    assert relation.cacheBuilder().cachedPlan().session().equals(own)
    let_go(spark)


def test_hash_tables_of_a_large_run_are_divided_into_more_tasks(spark: SparkSession, tmp_path: Path) -> None:
    """With 50,000 transactions, those of two tasks did not fit into the memory, and queries failed."""
    folder = GoodRun().write(tmp_path / "run")
    path = folder / "tables" / "collect.json"
    facts = json.loads(path.read_text())
    tasks = []
    for sizes in ({"outputs": 100_000_000}, {"batches": 450_000}, {"commits": 250_000}, {}):
        path.write_text(json.dumps({**facts, "rows": {**facts["rows"], **sizes}}))
        Tables(folder, spark, plan.read(folder / "plan.json"), history.read(folder / "history.jsonl"))
        grouped: Any = spark.range(9).groupBy(F.expr("id % 3")).count()
        tasks.append(grouped._jdf.rdd().getNumPartitions())
    assert tasks == [10, 5, 3, 1]
