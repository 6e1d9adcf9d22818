"""Analyse the Spark SQL of a workload before it runs: names, types and syntax, without any data.

SELECT 'output' AS topic, partition, numbr, digest, input FROM inputs
→ workload 'orders': expected: A column with name `numbr` cannot be resolved. Did you mean …? [`number`, …]
"""

import re
from collections.abc import Callable, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from onceproof.harness.base.errors import BadInput
from onceproof.harness.model.contract import Contract
from onceproof.harness.model.scenario import Scenario
from onceproof.harness.model.workload import Workload
from onceproof.verifiers.evidence import modelled

_PLACE = re.compile(r"[.;]? \(?line [0-9]+,? pos [0-9]+\)?;?$")  # in the SQL around the workload's
_INPUTS = "partition int, offset bigint, number bigint, digest bigint, grouping bigint, least int, input struct<{}>"
_INPUT = "partition: int, offset: bigint, least: int"
_OUTPUT = "topic string, partition int, number bigint, key binary, value binary"
_CONTENT = "key binary, value binary, header binary"
_LOAD = "number bigint, partition int, offset bigint, key binary, value binary"
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_EXPECTED = {
    "topic": ("string",),
    "partition": _WHOLE,
    "number": _WHOLE,
    "digest": _WHOLE,
    "input": (f"struct<{_INPUT}>".replace(": ", ":").replace(", ", ","),),
}


def analyse(spark: SparkSession, scenario: Scenario) -> None:
    """Raise BadInput with the part of a scenario's workload that Spark does not accept, and the reason."""
    apart = spark.newSession()  # with views of its own
    contract = scenario.pipeline.contract
    if contract is not None:
        _analyse_contract(apart, contract, scenario.pipeline.compared)
    else:
        _analyse_workload(apart, f"workload {scenario.workload.name!r}: ", scenario.pipeline)


def _analyse_workload(apart: SparkSession, named: str, workload: Workload) -> None:
    empty = apart.createDataFrame([], _INPUTS.format(_INPUT))
    empty.createOrReplaceTempView("inputs")
    outputs = apart.createDataFrame([], _OUTPUT)
    expected = _analysed(named, "expected", lambda: apart.sql(f"SELECT * FROM (\n{workload.expected}\n)"))
    types = dict(expected.dtypes)
    if sorted(expected.columns) != sorted(_EXPECTED):
        allowed = ", ".join(_EXPECTED)
        raise BadInput(f"{named}expected: columns {', '.join(expected.columns)}; allowed: {allowed}")
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


def _analyse_contract(apart: SparkSession, contract: Contract, topics: Sequence[str]) -> None:
    """Raise BadInput when Spark does not accept the SQL of the tables `[load]`, `[outputs]` and `[model]`."""
    outputs, load = apart.createDataFrame([], _CONTENT), apart.createDataFrame([], _LOAD)
    if contract.id:
        _analysed("load.", "id", lambda: load.selectExpr(f"cast({contract.id} AS string)"))
    for topic, each in contract.ids.items():
        _analysed(f"outputs.{topic}.", "input", lambda each=each: outputs.selectExpr(f"cast({each.sql} AS string)"))  # type: ignore[misc]
    if not contract.model:
        return
    modelled.inputs(load, contract).createOrReplaceTempView("inputs")
    columns = _analysed("model.", "sql", lambda: apart.sql(f"SELECT * FROM (\n{contract.model}\n)")).columns
    needed = ["number"] if contract.compare == "each" else ["number", "key"] if contract.compare == "steps" else ["key"]
    needed += ["topic"] if len(topics) > 1 else []
    compared = modelled.compared(contract, columns)
    if not compared or set(needed) - set(columns):
        allowed = f"{', '.join(needed)}, and at least one column that is compared with the outputs"
        raise BadInput(f"model.sql: columns {', '.join(columns)}; allowed: {allowed}")
    for topic in topics:
        for name in (*compared, *(["key"] if "key" in needed else [])):
            sql = contract.column(topic, name).sql
            _analysed(f"outputs.{topic}.columns.", name, lambda sql=sql: outputs.selectExpr(f"cast({sql} AS string)"))  # type: ignore[misc]


def _analysed(named: str, name: str, make: Callable[[], DataFrame]) -> DataFrame:
    try:
        return make()
    except PySparkException as error:
        says = _PLACE.sub("", str(error).strip().splitlines()[0])
        raise BadInput(f"{named}{name}: {says[:300]}") from None


def _require(named: str, name: str, kind: str, allowed: tuple[str, ...]) -> None:
    if allowed and kind not in allowed:
        raise BadInput(f"{named}{name}: type {kind}; allowed: {', '.join(allowed)}")
