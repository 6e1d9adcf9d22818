"""What a worker writes into its header is what Spark reads from it; anything else counts as no header."""

from pyspark.sql import SparkSession

from harness.provenance import digits_sql, parts_sql, passed_on, provenance
from verifiers.spark import rows

RIGHT = provenance(3, 41, 1, 2, 12)


def read(spark: SparkSession, header: bytes | None, *, via: bool = False) -> tuple[int | None, ...]:
    told = spark.createDataFrame([(header,)], "header binary").selectExpr(*digits_sql("header", via=via))
    [row] = rows(told.selectExpr(*parts_sql(via=via)))
    return tuple(row)


def test_each_part_is_read_where_it_was_written(spark: SparkSession) -> None:
    assert read(spark, RIGHT) == (3, 41, 1, 2, 12)
    widest = 99_999, 10**13 - 1, 999, 99_999, 10**10 - 1
    assert read(spark, provenance(*widest)) == widest
    handed = passed_on(RIGHT, 2, 1, 7, 3, 44)
    assert read(spark, handed, via=True) == (3, 41, 2, 1, 7, 3, 44)


def test_what_is_no_header_of_ours_is_none(spark: SparkSession) -> None:
    nothing = (None,) * 5
    assert read(spark, None) == read(spark, b"") == read(spark, RIGHT[:-1]) == nothing
    assert read(spark, b"x" * len(RIGHT)) == nothing
    assert read(spark, passed_on(RIGHT, 2, 1, 7, 3, 44)) == nothing
