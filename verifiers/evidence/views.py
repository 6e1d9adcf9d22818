"""Run Spark SQL over views of given names, while other checks do the same with other frames under these names."""

from threading import Lock

from pyspark.sql import DataFrame, SparkSession

_LOCK = Lock()


def query(spark: SparkSession, sql: str, **views: DataFrame) -> DataFrame:
    """Return the frame of a query, which is analysed here and executed later. Raises Spark's errors."""
    with _LOCK:
        for name, frame in views.items():
            frame.createOrReplaceTempView(name)
        return spark.sql(sql)
