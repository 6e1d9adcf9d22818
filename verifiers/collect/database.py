"""Read a table of a database that an application or a worker writes, as a Spark frame.

    read(spark, "jdbc:postgresql://127.0.0.1:5432/shop?user={env:SHOP_USER}", "op_1a2b3c4d_7_totals")
    of_workers(spark, folder, "results")

A row of an application becomes a record: its value is a JSON object with a field for each column, and its column
`key`, if there is one, is the key. Rows have no order, so `offset` only numbers them, in the order of their values.
"""

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from onceproof.harness.base.errors import BadInput, HarnessError, WorkloadError
from onceproof.harness.model.workload import SQLITE
from onceproof.harness.record.payload import NUMBER_DIGITS

_DRIVER = "org.postgresql.Driver"
_ENVIRONMENT = re.compile(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_TIMEOUT_S = "30"
_ROWS = 100_000  # of SQLite at once
_COLUMNS = {
    "offset": pa.int64(),
    "partition": pa.int32(),
    "key": pa.binary(),
    "value": pa.binary(),
    "header": pa.binary(),
}
_SCHEMA = pa.schema(list(_COLUMNS.items()))


def address(url: str) -> str:
    """Return a URL with the values of the environment variables that it names. Raises BadInput if one is not set."""
    missing = next((name for name in _ENVIRONMENT.findall(url) if name not in os.environ), None)
    if missing is not None:
        raise BadInput(f"outputs: jdbc: {{env:{missing}}}: this environment variable is not set")
    return _ENVIRONMENT.sub(lambda found: os.environ[found[1]], url)


def read(spark: SparkSession, url: str, table: str) -> DataFrame:
    """Return the rows of a table: partition (0), offset, key, value, digest, header, told_0 and told_1 (null).

    Raises WorkloadError when the database has no such table, and HarnessError when it does not answer.
    """
    options = {"driver": _DRIVER, "dbtable": f'"{table}"', "connectTimeout": _TIMEOUT_S, "socketTimeout": _TIMEOUT_S}
    try:
        frame = spark.read.format("jdbc").options(url=address(url), **options).load()
    except (AnalysisException, Py4JJavaError) as error:
        says = str(error).splitlines()[0][:300]
        if "does not exist" in says:
            raise WorkloadError(f"the application has not made the table {table}") from None
        raise HarnessError(f"the database of the table {table} does not answer: {says}") from None
    key = "cast(key AS binary)" if "key" in frame.columns else "cast(NULL AS binary)"
    return frame.selectExpr(f"{key} AS key", "cast(to_json(struct(*)) AS binary) AS value").selectExpr(
        "0 AS partition",
        "cast(row_number() OVER (ORDER BY value) - 1 AS bigint) AS offset",
        "key",
        "value",
        "xxhash64(key, value) AS digest",
        "cast(NULL AS binary) AS header",
        "cast(NULL AS bigint) AS told_0",
        "cast(NULL AS bigint) AS told_1",
    )


def of_workers(spark: SparkSession, folder: Path, table: str) -> DataFrame:
    """Return the rows that workers wrote into SQLite, as `topics.read` does; `offset` is the number of the row."""
    target = folder.absolute() / f"{SQLITE}-{table}.parquet"
    with closing(sqlite3.connect(f"file:{folder.absolute() / SQLITE}?mode=ro", uri=True)) as database:
        rows = database.execute(f'SELECT id, partition, key, value, header FROM "{table}" ORDER BY id')
        with pq.ParquetWriter(target, _SCHEMA) as writer:
            while some := rows.fetchmany(_ROWS):
                writer.write_table(pa.table([list(values) for values in zip(*some, strict=True)], schema=_SCHEMA))
    place, owner = (f"try_cast(cast(substring(header, {at}, 18) AS string) AS bigint)" for at in (1, 19))
    return spark.read.parquet(str(target)).selectExpr(
        "partition",
        "offset",
        f"try_cast(cast(substring(value, 1, {NUMBER_DIGITS}) AS string) AS bigint) AS number",
        "xxhash64(key, value) AS digest",
        f"{place} AS told_0",
        f"{owner} AS told_1",
    )


def positions(folder: Path) -> dict[int, int]:
    """Return the positions that workers keep in SQLite: input partition → offset."""
    with closing(sqlite3.connect(f"file:{folder.absolute() / SQLITE}?mode=ro", uri=True)) as database:
        return dict(database.execute("SELECT partition, next FROM positions"))
