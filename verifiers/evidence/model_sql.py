"""Refuse the Spark SQL of a workload unless it is a query on the inputs.

A run folder may come from anyone, and Spark SQL can do more than query: `ADD JAR` and `CREATE FUNCTION` load code,
`TRANSFORM … USING` starts a program, `reflect` calls any Java method, and a path can stand in the place of a table. So
the parsed SQL may only consist of relational operators, over `inputs` and the query's own tables, and the functions
that call Java methods are taken out of the session.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from onceproof.harness.base.errors import BadInput
from onceproof.harness.model.declaration import FILE
from onceproof.harness.model.workload import Declaration

_CALL_JAVA = ("reflect", "java_method", "try_reflect")
_OPERATORS = frozenset(
    {
        "Aggregate",
        "Deduplicate",
        "Distinct",
        "Except",
        "Filter",
        "Generate",
        "GlobalLimit",
        "Intersect",
        "Join",
        "LateralJoin",
        "LocalLimit",
        "LocalRelation",
        "Offset",
        "OneRowRelation",
        "Pivot",
        "Project",
        "Sort",
        "SubqueryAlias",
        "UnresolvedHaving",
        "UnresolvedHint",
        "UnresolvedInlineTable",
        "UnresolvedRelation",
        "UnresolvedSubqueryColumnAliases",
        "UnresolvedTVFAliases",
        "UnresolvedTableValuedFunction",
        "UnresolvedWith",
        "Union",
        "Unpivot",
        "WithWindowDefinition",
    }
)


def check(spark: SparkSession, declared: Declaration, folder: Path) -> None:
    """Check the SQL of a workload that a verdict executes. Raises BadInput with the file and the key."""
    state: Any = spark._jsparkSession.sessionState()
    catalyst: Any = spark.sparkContext._jvm.org.apache.spark.sql.catalyst  # type: ignore[union-attr]
    for name in _CALL_JAVA:
        state.functionRegistry().dropFunction(catalyst.FunctionIdentifier(name))
    for key, sql in _queries(declared).items():
        try:
            problem = _problem(state.sqlParser().parsePlan(sql))
        except (PySparkException, Py4JError) as error:
            problem = " ".join(str(error).split())[:300]
        if problem:
            raise BadInput(f"{folder / FILE}: {key}: not a query on the inputs: {problem}")


def _queries(declared: Declaration) -> Mapping[str, str]:
    """Return the SQL that a verdict executes, by key; an expression is put into a query."""
    queries = {"expected": declared.expected} if declared.expected else {}
    if declared.contract is not None and declared.contract.model:
        queries["contract.model"] = declared.contract.model
        for topic, columns in declared.contract.columns.items():
            for name, each in columns.items():
                queries[f"contract.columns.{topic}.{name}"] = f"SELECT (\n{each.sql}\n) FROM inputs"
    if declared.aggregate is not None:
        queries["aggregate.amount"] = f"SELECT (\n{declared.aggregate.amount}\n) FROM inputs"
        queries["aggregate.over"] = f"SELECT (\n{declared.aggregate.over}\n) FROM inputs"
    return queries


def _problem(plan: Any) -> str:
    """Return what in a parsed query is not allowed, in words; empty if everything is."""
    operator: str = plan.getClass().getSimpleName()
    if operator not in _OPERATORS:
        return f"{operator} is not allowed"
    if operator == "UnresolvedRelation" and plan.multipartIdentifier().size() > 1:
        return f"the table {plan.tableName()} is not allowed"
    return next(filter(None, map(_problem, _parts(plan))), "")


def _parts(plan: Any) -> Iterator[Any]:
    """Yield the children of an operator, its common table expressions, and the subqueries in its expressions."""
    tables = plan.innerChildren() if plan.getClass().getSimpleName() == "UnresolvedWith" else None
    for each in filter(None, (plan.children(), plan.subqueries(), tables)):
        yield from (each.apply(index) for index in range(each.size()))
