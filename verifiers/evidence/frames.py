"""Move the rows of frames between Spark and Python.

for row in each_row(frame): …                              few rows, or in parts
firsts, markers = columns(frame.select("first", "marker")) some hundred thousand rows, as lists of values
frame = small(spark, [("t-input", 0)], "topic string, partition int")
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from typing import Any

import pyarrow as pa
from pyspark.errors.exceptions.captured import unwrap_spark_exception
from pyspark.serializers import BatchedSerializer, CPickleSerializer
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.serializers import ArrowCollectSerializer
from pyspark.util import local_connect_and_auth

_ROWS_AT_ONCE = 10_000
_ARROW = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64()}


def rows(frame: DataFrame) -> list[Row]:
    """Return the rows of a small frame."""
    return list(each_row(frame))


def each_row(frame: DataFrame) -> Iterator[Row]:
    """Yield the rows of a frame, of which a part is in the memory of Python at a time.

    PySpark's own `collect` leaves its socket to the garbage collector, which then issues a warning.
    """
    port, secret, _ = frame._jdf.collectToPython()  # the job is done when this returns; its result is then read
    answer, connection = local_connect_and_auth(port, secret)
    batches: Any = BatchedSerializer(CPickleSerializer())  # type: ignore[no-untyped-call]
    with closing(connection), closing(answer):
        yield from batches.load_stream(answer)


def columns(frame: DataFrame) -> list[list[Any]]:
    """Return the values of each column of a frame: numbers, strings or booleans. The order of the rows is any.

    They come as Arrow data, which takes Python a tenth of the time that `each_row` takes for its rows.
    """
    port, secret, server = frame._jdf.collectAsArrowToPython()
    answer, connection = local_connect_and_auth(port, secret)
    batches: Any = ArrowCollectSerializer()  # type: ignore[no-untyped-call]
    try:
        with closing(connection), closing(answer):
            *parts, _ = batches.load_stream(answer)  # the last one is the order of the others
    finally:
        with unwrap_spark_exception():
            server.getResult()  # raises what the job raised, which runs while its result is read
    return [list(chain.from_iterable(part.column(i).to_pylist() for part in parts)) for i in range(len(frame.columns))]


def unless_empty(kept: DataFrame) -> DataFrame | None:
    """Return a frame that is kept in memory; None, and it is kept no longer, if it has no rows."""
    if not kept.isEmpty():
        return kept
    kept.unpersist()
    return None


def small(spark: SparkSession, rows: Iterable[Sequence[Any]], columns: str) -> DataFrame:
    """Return a small frame from rows in Python, with `columns` as in "topic string, partition int, start bigint".

    The rows go to Spark as Arrow data, which becomes part of the query plan; a list would cost a job of its own.
    """
    schema = pa.schema([(name, _ARROW[kind]) for name, kind in (column.split() for column in columns.split(", "))])
    left, parts = iter(rows), list[pa.RecordBatch]()
    while part := list(islice(left, _ROWS_AT_ONCE)):
        arrays = zip(zip(*part, strict=True), schema.types, strict=True)
        parts.append(pa.record_batch([pa.array(values, kind) for values, kind in arrays], schema))
    return spark.createDataFrame(pa.Table.from_batches(parts, schema).combine_chunks())
