"""A session that gives many verdicts frees what each of them took."""

from typing import Any

from pyspark.sql import SparkSession

from onceproof.verifiers.evidence.spark import let_go


def test_a_persisted_frame_does_not_clone_the_session(spark: SparkSession) -> None:
    """Spark keeps each clone for ever."""
    frame = spark.range(3).selectExpr("id + 1 AS kept").persist()
    own: Any = spark._jsparkSession
    relation = frame._jdf.queryExecution().withCachedData()
    assert relation.cacheBuilder().cachedPlan().session().equals(own)
    let_go(spark)
