"""Give the rows of an application's model, and the outputs in the same columns.

    rows(tables)       topic, number, key, result               what the model gives
    outputs(tables)    topic, partition, offset, key, result    what the log has; and gone
    views_of(tables)   what the query for the expected outputs may name

`result` has the columns that are compared, each of them as text, in a JSON object; columns that are null are left out.
So an output without a value (`gone`) is like one in which all of these columns are null.
"""

from collections.abc import Iterable, Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from onceproof.harness.model.contract import Contract
from onceproof.harness.record.tables import CONTENTS, LOAD
from onceproof.verifiers.evidence import views
from onceproof.verifiers.evidence.cached import cached
from onceproof.verifiers.evidence.tables import PLACE, Tables

_FIELD = "get_json_object(value, '$.{}')"


def inputs(frame: DataFrame, contract: Contract) -> DataFrame:
    """Return the view `inputs` of a model, of a frame with number, partition, offset, key and value (binary)."""
    text = ["number", "partition", "offset", "cast(key AS string) AS key", "cast(value AS string) AS value"]
    fields = [f"try_cast({_FIELD.format('amount')} AS bigint) AS amount", f"{_FIELD.format('text')} AS text"]
    return frame.selectExpr(*text).selectExpr("*", *(fields if contract.load == "json" else []))


def compared(contract: Contract, columns: Iterable[str]) -> list[str]:
    """Return which columns of a model are compared with the outputs."""
    own = ("topic", "number") if contract.compare == "each" else ("topic", "number", "key")
    return [name for name in columns if name not in own]


@cached
def _asked(tables: Tables) -> DataFrame:
    """Return the model's own columns.

    If outputs are compared by key, the inputs are those below the committed offset: others are still to be processed.
    """
    contract = of(tables)
    truth = tables.truth.select("number", "partition", "offset")
    if contract.compare != "each":
        truth = truth.join(F.broadcast(tables.positions_frame), "partition").where("offset < position").drop("position")
    load = tables.parquet("ledger/load-*.parquet", LOAD.spark).join(truth, "number")
    return views.query(tables.spark, contract.model, inputs=inputs(load, contract))


@cached
def rows(tables: Tables) -> DataFrame:
    """Return the rows of the model: topic, number and key (null if it does not return them), result."""
    found = _asked(tables)
    names = {"topic": f"'{tables.workload.compared[0]}'", "number": "NULL", "key": "NULL"}
    names |= {name: f"`{name}`" for name in names if name in found.columns}
    result = _result({name: f"`{name}`" for name in compared(of(tables), found.columns)})
    number, key = f"cast({names['number']} AS bigint) AS number", f"cast({names['key']} AS string) AS key"
    return tables.gathered(found.select(F.expr(f"{names['topic']} AS topic"), F.expr(number), F.expr(key), result))


def views_of(tables: Tables) -> dict[str, DataFrame]:
    """Return what the query for the expected outputs of an application may name: `modelled`, if it has a model."""
    contract = tables.workload.contract
    return {"modelled": rows(tables)} if contract is not None and contract.model else {}


@cached
def outputs(tables: Tables) -> DataFrame:
    """Return the outputs with `PLACE`, key (as text), result, and gone (whether the output has no value)."""
    contract, names = of(tables), compared(of(tables), _asked(tables).columns)
    contents = tables.parquet("tables/outputs.parquet", CONTENTS.spark)

    def of_topic(topic: str) -> DataFrame:
        key = F.expr(f"cast({contract.column(topic, 'key').sql} AS string)").alias("key")
        result = _result({each: contract.column(topic, each).sql for each in names})
        return contents.where(F.col("topic") == topic).select(*PLACE, key, result, F.expr("value IS NULL AS gone"))

    return reduce(DataFrame.unionAll, map(of_topic, tables.workload.compared))


def _result(columns: Mapping[str, str]) -> Column:
    fields = (F.expr(f"cast({sql} AS string)").alias(name) for name, sql in sorted(columns.items()))
    return F.to_json(F.struct(*fields)).alias("result")


def of(tables: Tables) -> Contract:
    """Return the contract of an application with a model."""
    contract = tables.workload.contract
    assert contract is not None  # the need MODEL makes sure of it
    return contract
