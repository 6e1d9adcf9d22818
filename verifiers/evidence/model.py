"""Analyse the Spark SQL of a workload before it runs: names, types and syntax, without any data.

SELECT 'output' AS topic, partition, numbr, digest, input FROM inputs
→ workload 'orders': expected: A column with name `numbr` cannot be resolved. Did you mean …? [`number`, …]
"""

import re
from collections.abc import Callable

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from onceproof.harness.base.errors import BadInput
from onceproof.harness.model import registry

_PLACE = re.compile(r"[.;]? \(?line [0-9]+,? pos [0-9]+\)?;?$")  # in the SQL around the workload's
_INPUTS = "partition int, offset bigint, number bigint, digest bigint, grouping bigint, least int, input struct<{}>"
_INPUT = "partition: int, offset: bigint, least: int"
_OUTPUT = "topic string, partition int, number bigint, key binary, value binary"
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_EXPECTED = {
    "topic": ("string",),
    "partition": _WHOLE,
    "number": _WHOLE,
    "digest": _WHOLE,
    "input": (f"struct<{_INPUT}>".replace(": ", ":").replace(", ", ","),),
}


def analyse(spark: SparkSession, named: str) -> None:
    """Raise BadInput with the part of a workload that Spark does not accept, and the reason.

    `named` is the workload's name in a scenario.
    """
    workload = registry.workload(named)
    apart = spark.newSession()  # with views of its own
    empty = apart.createDataFrame([], _INPUTS.format(_INPUT))
    empty.createOrReplaceTempView("inputs")
    outputs = apart.createDataFrame([], _OUTPUT)
    expected = _analysed(named, "expected", lambda: apart.sql(f"SELECT * FROM (\n{workload.expected}\n)"))
    types = dict(expected.dtypes)
    if sorted(expected.columns) != sorted(_EXPECTED):
        allowed = ", ".join(_EXPECTED)
        raise BadInput(f"workload {named!r}: expected: columns {', '.join(expected.columns)}; allowed: {allowed}")
    for column, allowed_types in _EXPECTED.items():
        _require(named, f"expected: {column}", types[column], allowed_types)
    parts: dict[str, tuple[str, tuple[str, ...]]] = {"identity": (workload.identity, _WHOLE)}
    if workload.aggregate is not None:
        parts["aggregate.total"] = (workload.aggregate.total, _WHOLE)
        parts["aggregate.amount"] = (workload.aggregate.amount, _WHOLE)
        parts["aggregate.over"] = (workload.aggregate.over, ())
    for name, (sql, allowed_types) in parts.items():
        found = _analysed(named, name, lambda sql=sql: outputs.selectExpr("partition", f"{sql} AS it"))  # type: ignore[misc]
        _require(named, name, dict(found.dtypes)["it"], allowed_types)


def _analysed(named: str, name: str, make: Callable[[], DataFrame]) -> DataFrame:
    try:
        return make()
    except PySparkException as error:
        says = _PLACE.sub("", str(error).strip().splitlines()[0])
        raise BadInput(f"workload {named!r}: {name}: {says[:300]}") from None


def _require(named: str, name: str, kind: str, allowed: tuple[str, ...]) -> None:
    if allowed and kind not in allowed:
        raise BadInput(f"workload {named!r}: {name}: type {kind}; allowed: {', '.join(allowed)}")
