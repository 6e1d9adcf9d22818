"""Read a table of a database that an application writes, as a Spark frame by JDBC.

    read(spark, "jdbc:postgresql://127.0.0.1:5432/shop?user={env:SHOP_USER}", "op_1a2b3c4d_7_totals")

A row becomes a record: its value is a JSON object with a field for each column, and its column `key`, if there is one,
is the key. Rows have no order, so `offset` only numbers them, in the order of their values.
"""

import os
import re

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from onceproof.harness.base.errors import BadInput, HarnessError, WorkloadError

_DRIVER = "org.postgresql.Driver"
_ENVIRONMENT = re.compile(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_TIMEOUT_S = "30"


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
