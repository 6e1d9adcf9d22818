"""Read a table of a database that an application or a worker writes, as a Spark frame.

    read(spark, "jdbc:postgresql://127.0.0.1:5432/shop?user={env:SHOP_USER}", "op_1a2b3c4d_7_totals")
    of_workers(spark, "jdbc:sqlite:/tmp/runs/database-1/database.sqlite", "op_1a2b3c4d_7_results")

A row of an application becomes a record: its value is a JSON object with a field for each column, and its column
`key`, if there is one, is the key. Rows have no order, so `offset` only numbers them, in the order of their values. A
PostgreSQL column `numeric` without a scale, of which Spark makes a decimal with 18 places, has no zeros at its end.
"""

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from onceproof.harness.base.errors import HarnessError, WorkloadError
from onceproof.harness.model.databases import SQLITE_URL, address
from onceproof.harness.record.payload import NUMBER_DIGITS
from onceproof.verifiers.evidence.frames import rows

_UNSCALED = "decimal(38,18)"
_SQLITE = {"driver": "org.sqlite.JDBC"}
_POSTGRESQL = {"driver": "org.postgresql.Driver", "connectTimeout": "30", "socketTimeout": "30", "fetchsize": "10000"}


def read(spark: SparkSession, url: str, table: str) -> DataFrame:
    """Return the rows of a table: partition (0), offset, key, value, digest, header, told_0 and told_1 (null).

    Raises WorkloadError when the database has no such table, and HarnessError when it does not answer.
    """
    frame = _table(spark, url, table)
    key = "cast(key AS binary)" if "key" in frame.columns else "cast(NULL AS binary)"
    fields = [F.col(f"`{name}`") if kind != _UNSCALED else _plain(name) for name, kind in frame.dtypes]
    value = F.to_json(F.struct(*fields)).cast("binary").alias("value")
    return frame.select(F.expr(key).alias("key"), value).selectExpr(
        "0 AS partition",
        "cast(row_number() OVER (ORDER BY value) - 1 AS bigint) AS offset",
        "key",
        "value",
        "xxhash64(key, value) AS digest",
        "cast(NULL AS binary) AS header",
        "cast(NULL AS bigint) AS told_0",
        "cast(NULL AS bigint) AS told_1",
    )


def _plain(name: str) -> Column:
    """Return a decimal as text, without the zeros at its end."""
    return F.regexp_replace(F.col(f"`{name}`").cast("string"), r"\.?0+$", "").alias(name)


def of_workers(spark: SparkSession, url: str, table: str) -> DataFrame:
    """Return the rows that onceproof's own workers wrote, as `topics.read` does; `offset` is the number of the row.

    Raises as `read` does.
    """
    place, owner = (f"try_cast(cast(substring(header, {at}, 18) AS string) AS bigint)" for at in (1, 19))
    return _table(spark, url, table).selectExpr(
        "partition",
        "cast(id AS bigint) AS offset",
        f"try_cast(cast(substring(value, 1, {NUMBER_DIGITS}) AS string) AS bigint) AS number",
        "xxhash64(key, value) AS digest",
        f"{place} AS told_0",
        f"{owner} AS told_1",
    )


def positions(spark: SparkSession, url: str, table: str) -> dict[int, int]:
    """Return the positions that workers keep in the table `table`: input partition → offset. Raises as `read` does."""
    found = _table(spark, url, table).selectExpr("partition", "cast(next AS bigint) AS next")  # SQLite's is a decimal
    return {row["partition"]: row["next"] for row in rows(found)}


def _table(spark: SparkSession, url: str, table: str) -> DataFrame:
    options = _SQLITE if url.startswith(SQLITE_URL) else _POSTGRESQL
    try:
        return spark.read.format("jdbc").options(url=address(url), dbtable=f'"{table}"', **options).load()
    except (AnalysisException, Py4JJavaError) as error:
        says = str(error).splitlines()[0][:300]
        if "does not exist" in says or "no such table" in says:
            raise WorkloadError(f"nobody has made the table {table}") from None
        raise HarnessError(f"the database of the table {table} does not answer: {says}") from None
