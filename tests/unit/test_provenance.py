"""What a worker writes into its header is what Spark reads from it; anything else counts as no header."""

from pyspark.sql import SparkSession

from harness.provenance import HEADER, digits_sql, header_sql, parts_sql, passed_on, provenance
from verifiers.spark import rows

Headers = list[tuple[str, bytes]]
SCHEMA = "headers array<struct<key: string, value: binary>>"
RIGHT = provenance(3, 41, 1, 2, 12)


def read(spark: SparkSession, headers: Headers | None, *, via: bool = False) -> tuple[int | None, ...]:
    frame = spark.createDataFrame([(headers,)], SCHEMA)
    told = frame.selectExpr(f"{header_sql()} AS told").selectExpr(*digits_sql("told", via=via))
    [row] = rows(told.selectExpr(*parts_sql(via=via)))
    return tuple(row)


def test_each_part_is_read_where_it_was_written(spark: SparkSession) -> None:
    assert read(spark, [(HEADER, RIGHT)]) == (3, 41, 1, 2, 12)
    assert read(spark, [("trace", b"x"), (HEADER, RIGHT), ("more", b"")]) == (3, 41, 1, 2, 12)
    widest = 99_999, 10**13 - 1, 999, 99_999, 10**10 - 1
    assert read(spark, [(HEADER, provenance(*widest))]) == widest
    handed = passed_on(RIGHT, 2, 1, 7, 3, 44)
    assert read(spark, [(HEADER, handed)], via=True) == (3, 41, 2, 1, 7, 3, 44)


def test_what_is_no_header_of_ours_is_none(spark: SparkSession) -> None:
    nothing = (None,) * 5
    assert read(spark, None) == read(spark, []) == read(spark, [("trace", RIGHT)]) == nothing
    assert read(spark, [(HEADER, RIGHT), (HEADER, RIGHT)]) == nothing
    assert read(spark, [(HEADER, RIGHT[:-1])]) == read(spark, [(HEADER, b"")]) == nothing
    assert read(spark, [(HEADER, b"x" * len(RIGHT))]) == nothing
    assert read(spark, [(HEADER, passed_on(RIGHT, 2, 1, 7, 3, 44))]) == nothing
