"""What a scenario says of an application's outputs, and each wrong way to say it."""

import copy
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from onceproof.harness.base.errors import BadInput
from onceproof.harness.model import declaration
from onceproof.harness.model.contract import NUMBER
from onceproof.harness.model.scenario import Scenario, parse
from onceproof.verifiers.evidence import model
from onceproof.workloads import load

GOOD: dict[str, Any] = {
    "name": "orders",
    "about": "Our orders.",
    "app": {"command": ["orders"], "env": {"OUT": "{topic:enriched}"}},
    "workload": {"records": 100},
    "outputs": {"enriched": {"input": "json: $.order.id"}},
    "model": {"sql": "SELECT number, amount AS total FROM inputs"},
}


def changed(**tables: Any) -> dict[str, Any]:
    """The good scenario with other tables; None takes one out."""
    whole = copy.deepcopy(GOOD) | tables
    return {key: each for key, each in whole.items() if each is not None}


def scenario(**tables: Any) -> Scenario:
    return parse(changed(**tables), where="app.toml")


def test_the_level_follows_from_the_tables() -> None:
    assert [
        each.pipeline.contract and each.pipeline.contract.level
        for each in (
            scenario(outputs={"enriched": {}}, model=None),
            scenario(model=None),
            scenario(),
            scenario(
                outputs={"enriched": {}}, model={"sql": "SELECT key, 1 AS n FROM inputs", "compare": "final-per-key"}
            ),
        )
    ] == [0, 1, 2, 2]
    assert scenario().pipeline.topics == ("enriched",)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"app": None}, "outputs: allowed only with [app]"),
    ({"outputs": None}, "model: allowed only with tables [outputs.TOPIC]"),
    ({"outputs": None, "model": None}, "workload.name: missing; allowed: bank, "),
    (
        {"workload": {"name": "copy"}},
        "workload.name: copy; allowed: either a workload's name or tables [outputs.TOPIC]",
    ),
    ({"outputs": {"Enriched": {}}}, "outputs.Enriched"),
    (
        {"outputs": {"enriched": {"input": "jsno: $.id"}}},
        "'jsno: $.id': allowed: key, value, json: $.PATH, header: NAME",
    ),
    ({"outputs": {"enriched": {"input": "json: id"}}}, "'json: id': allowed: "),
    (
        {"outputs": {"enriched": {"input": "key", "each": "many"}}},
        "outputs.enriched.each: allowed: a number from 1 to 20",
    ),
    ({"outputs": {"enriched": {"input": "key", "each": "3..1"}}}, "outputs.enriched.each: allowed: "),
    (
        {"outputs": {"enriched": {"imput": "key"}}},
        "outputs.enriched.imput: unknown key; did you mean input?; allowed: ",
    ),
    (
        {"outputs": {"enriched": {"input": "key"}, "other": {}}, "app": {"command": ["orders"]}},
        "outputs.other.input: missing; allowed: in every table of outputs, or in none",
    ),
    (
        {"outputs": {"enriched": {}}},
        "outputs.enriched.input: missing; a model that is compared with each output needs it",
    ),
    ({"model": {"sql": "SELECT 1", "compare": "last"}}, "model.compare: "),
    ({"load": {"value": "orders.csv"}}, "load.value: allowed: json, FILE.py:NAME, FILE.jsonl, FILE.parquet"),
    ({"load": {"value": "orders.jsonl", "aborted": 0.1}}, "load.aborted: 0.1; allowed with orders.jsonl: 0, "),
    ({"load": {"id": "header: id"}}, "load.id: allowed: key, value, json: $.PATH, sql: EXPRESSION"),
    ({"outputs": {"enriched": {}}, "model": None, "load": {"id": "key"}}, "load.id: not without `input` in [outputs]"),
    (
        {"outputs": {"enriched": {"input": "header: a", "columns": {"total": "header: b"}}}},
        "outputs.enriched: headers a, b; allowed: one header for each topic",
    ),
    ({"app": {"command": ["x"], "env": {"OUT": "{topic:enrichd}"}}}, "app: {topic:enrichd}: allowed: {topic:input}, "),
    ({"app": {"command": ["java", "-cp", "{classpath}"]}}, "{classpath}: allowed only with a table [app.java]"),
    ({"app": {"command": ["x"], "java": {"jars": ["kafka-streams"]}}}, "app.java.jars"),
    ({"app": {"command": ["x"], "position": "somewhere"}}, "app.position: "),
    (
        {"app": {"command": ["x"], "position": "none"}},
        "done.by: group; allowed with app.position none: sentinel, quiet",
    ),
    (
        {"app": {"command": ["x"], "position": "none", "transactional": False}, "done": {"by": "quiet: 5s"}},
        "app.position: none; allowed without transactions: group, whose offsets show",
    ),
    (
        {
            "app": {"command": ["x"], "position": "none"},
            "outputs": {"enriched": {}},
            "done": {"by": "quiet: 5s"},
            "model": {"sql": "SELECT key, count(*) AS n FROM inputs GROUP BY key", "compare": "final-per-key"},
        },
        "app.position: none; allowed with a model: if each table of outputs has `input`",
    ),
    ({"outputs": {"rows": {"jdbc": "jdbc:oracle:thin:@db"}}}, "outputs.rows.jdbc: String should match pattern"),
    (
        {
            "app": {"command": ["x"], "transactional": False, "position": "group"},
            "outputs": {"rows": {"jdbc": "{env:DB}", "input": "key"}},
            "model": {"sql": "SELECT number, key, text FROM inputs", "compare": "steps"},
        },
        "model.compare: steps; allowed with jdbc: each, final-per-key, since rows have no order",
    ),
    (
        {"outputs": {"rows": {"jdbc": "{env:DB}", "input": "key"}, "enriched": {"input": "key"}}},
        "outputs.enriched.jdbc: missing; allowed: in every table of outputs, or in none",
    ),
    (
        {"outputs": {"rows": {"jdbc": "{env:DB}", "input": "key", "partition": "input"}}, "app": {"command": ["x"]}},
        "outputs.rows.partition: not with jdbc, since rows have no order and no partition",
    ),
    (
        {"outputs": {"rows": {"jdbc": "{env:DB}", "input": "key"}}, "app": {"command": ["x"]}},
        "app.transactional: true; allowed with outputs in a database: false",
    ),
    (
        {
            "outputs": {"rows": {"jdbc": "{env:DB}", "input": "key"}},
            "app": {"command": ["{table:row}"], "transactional": False, "position": "group"},
        },
        "app: {table:row}: allowed: {topic:input}, {table:rows}",
    ),
    (
        {
            "outputs": {"rows": {"jdbc": "{database}", "input": "key"}},
            "app": {"command": ["{database}"], "image": "rows", "transactional": False, "position": "group"},
        },
        "app: {database}: sqlite; allowed with image: postgresql, or an address",
    ),
    (
        {"app": {"command": ["x"], "assignment": "fixed"}},
        "app.ready: group; allowed with app.assignment fixed: log: REGEX, tcp: PORT",
    ),
    (
        {"app": {"command": ["x"], "assignment": "fixed", "ready": "tcp: 80"}, "outputs": None, "model": None}
        | {"workload": {"name": "copy"}},
        "app.assignment: allowed only with tables [outputs.TOPIC]",
    ),
    ({"done": {"by": "soon"}}, "done.by: allowed: group, sentinel, quiet: SECONDSs, from 1 to 600"),
    ({"done": {"by": "quiet: 0s"}}, "done.by: allowed: "),
    ({"done": {"by": "sentinel"}, "outputs": {"enriched": {}}, "model": None}, "done.by: sentinel; allowed: if each"),
    (
        {"done": {"by": "sentinel"}, "outputs": {"enriched": {"input": "key", "each": "0..1"}}},
        "done.by: sentinel; allowed: if each table of outputs has `input`, and each input at least one output",
    ),
    (
        {"done": {"by": "sentinel"}, "outputs": None, "model": None, "workload": {"name": "copy"}},
        "done: allowed only with tables [outputs.TOPIC]",
    ),
    (
        {
            "app": {"command": ["x"], "position": "none"},
            "done": {"by": "sentinel"},
            "faults": [{"name": "delete-records", "at_s": 3.0, "to": "behind"}],
        },
        "faults[0].name: delete-records: needs the offsets that a group commits",
    ),
    (
        {"app": {"command": ["x"], "position": "group"}, "outputs": None, "model": None, "workload": {"name": "copy"}},
        "app.position: allowed only with tables [outputs.TOPIC]",
    ),
]


@pytest.mark.parametrize(("tables", "says"), WRONG, ids=[says[:50] for _, says in WRONG])
def test_what_does_not_fit_is_refused(tables: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput) as refused:
        scenario(**tables)
    assert str(refused.value).startswith("app.toml: ") and says in str(refused.value)
    assert "\n" not in str(refused.value)


SQL = {
    "SELEC 1": "model.sql: [PARSE_SYNTAX_ERROR]",
    "SELECT number, amuont AS total FROM inputs": "with name `amuont` cannot be resolved",
    "SELECT amount AS total FROM inputs": "model.sql: columns total; allowed: number, and at least one column",
    "SELECT number FROM inputs": "model.sql: columns number; allowed: number, and at least one column",
}


@pytest.mark.parametrize("sql", SQL)
def test_a_wrong_model_is_refused(spark: SparkSession, sql: str) -> None:
    with pytest.raises(BadInput) as refused:
        model.analyse(spark, scenario(model={"sql": sql}))
    assert SQL[sql] in str(refused.value)


def test_wrong_expressions_are_refused(spark: SparkSession) -> None:
    model.analyse(spark, scenario())
    for outputs, says in (
        ({"input": "sql: vaule"}, "outputs.enriched.input: "),
        ({"input": "key", "columns": {"total": "sql: x(value)"}}, "outputs.enriched.columns.total: "),
    ):
        with pytest.raises(BadInput, match=says.replace(".", r"\.")):
            model.analyse(spark, scenario(outputs={"enriched": outputs}))
    with pytest.raises(BadInput, match=r"load\.id: "):
        model.analyse(spark, scenario(load={"id": "sql: nubmer"}))
    several = {"enriched": {"input": "key"}, "other": {"input": "key"}}
    with pytest.raises(BadInput, match="allowed: number, topic, and at least one column"):
        model.analyse(spark, scenario(outputs=several))


def test_a_declaration_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = scenario(outputs={"enriched": {"input": "header: id", "columns": {"total": "json: $.total"}}}).pipeline
    declaration.write(made, tmp_path)
    assert declaration.read(tmp_path).contract == made.contract


def config(what: str) -> dict[str, Any]:
    return {"load": what, "seed": 3, "keys": 10, "key_skew": 0.0, "record_bytes": 150}


def test_json_inputs_have_their_size_and_number() -> None:
    made = load.load(config("json"))
    record = made.record(17)
    assert record == made.record(17) and record.value is not None and len(record.value) == 150
    assert record.value.startswith(b'{"number":17,"key":"') and (NUMBER, b"17") in record.headers
    assert len({made.record(number).value for number in range(100)}) == 100


def test_a_function_makes_inputs(tmp_path: Path) -> None:
    path = tmp_path / "orders.py"
    path.write_text("def make(number, dice):\n    return f'k{dice.randrange(5)}', None, [('a', b'b')]\n")
    record = load.load(config(f"{path}:make")).record(7)
    dice = random.Random("3:7")
    assert record == (f"k{dice.randrange(5)}".encode(), None, [("a", b"b"), (NUMBER, b"7")])
    path = tmp_path / "wrong.py"
    path.write_text("def other(number, dice):\n    return 7\n")
    with pytest.raises(BadInput, match="expected key and value"):
        load.load(config(f"{path}:other".replace("orders", "orders"))).record(7)


def test_the_records_of_a_file_are_inputs(tmp_path: Path) -> None:
    lines, table = tmp_path / "orders.jsonl", tmp_path / "orders.parquet"
    lines.write_text('{"key": "a", "value": {"id": 1}}\n{"key": null, "value": "two"}\n')
    made = load.load(config(str(lines)))
    assert made.records_max == 2
    assert made.record(0)[:2] == (b"a", b'{"id":1}') and made.record(1)[:2] == (None, b"two")
    pq.write_table(pa.table({"key": [b"a"], "value": [b"\x00\xff"]}), table)
    assert load.load(config(str(table))).record(0)[:2] == (b"a", b"\x00\xff")
    lines.write_text('{"value": "two"}\n')
    for path in (lines, tmp_path / "none.jsonl"):
        with pytest.raises(BadInput, match=r"load\.value: "):
            load.load(config(str(path)))
