"""Rows of frames reach Python as they are in Spark."""

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from onceproof.verifiers.evidence.frames import columns, rows


def test_columns_have_the_values_of_the_rows(spark: SparkSession) -> None:
    frame = spark.range(25_000).selectExpr(
        "id", "IF(id % 3 = 0, NULL, cast(id AS string)) AS name", "id % 2 = 0 AS even"
    )
    assert sorted(zip(*columns(frame), strict=True)) == sorted(tuple(row) for row in rows(frame))


def test_columns_of_a_frame_without_rows(spark: SparkSession) -> None:
    assert columns(spark.range(0).selectExpr("id", "id AS same")) == [[], []]


def test_an_error_of_the_job_is_raised(spark: SparkSession) -> None:
    frame = spark.range(3).selectExpr("IF(id = 2, raise_error('no such marker'), id) AS id")
    with pytest.raises(PySparkException, match="no such marker"):
        columns(frame)
