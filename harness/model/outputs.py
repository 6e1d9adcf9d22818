"""The tables `[load]`, `[outputs.TOPIC]` and `[model]` of a scenario: what an application must do, and to which inputs.

    [outputs.enriched]              level 0: only the log and the requests are judged
    input = "json: $.order.id"      level 1: which input an output comes from
    each = "1"

    [model]                         level 2: what is right
    sql = "SELECT key, sum(amount) AS total FROM inputs GROUP BY key"
    compare = "final-per-key"

They stand in the place of a workload's name (`harness/model/contract.py`).
"""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, field_validator

from onceproof.harness.model import contract
from onceproof.harness.model.app import AppSpec
from onceproof.harness.model.contract import Compare, Contract
from onceproof.harness.model.spec import Strict
from onceproof.harness.model.workload import Wiring, Workload

_EACH = re.compile(r"([0-9]{1,2})(?:\.\.([0-9]{1,2}))?")
_EACH_MAX = 20
_FILE = re.compile(r".+\.(jsonl|parquet)|.+\.py:[A-Za-z_]\w*")
Topic = Annotated[str, Field(pattern=r"^[a-z][a-z-]{0,79}$")]
Text = Annotated[str, Field(min_length=1, max_length=10_000, pattern=r"^[^\x00]*$")]


class LoadSpec(Strict):
    """The table `[load]` of a scenario with `[outputs]`: the inputs, whose number and rate `[workload]` says.

    - `value`: what an input contains. `json` is an object with number, key, amount (an integer) and text, of
      `record_bytes`. `FILE.py:NAME` is a function of the input's number and a `random.Random` of its own; it returns
      key and value, as bytes, text or None, and optionally a list of headers, each a name and bytes. A `.jsonl` file
      has an object with `key` and `value` on each line, and a `.parquet` file columns of these names; the load ends
      where the file ends.
    - `id`: what identifies an input, in the forms of `input` in `[outputs]`, except a header (default: its number).
    - `aborted`: bait, as a share of the inputs: further inputs in transactions that the generator aborts, so that no
      reader under `read_committed` sees them. Not with a file.
    """

    value: Text = "json"
    id: str = ""
    aborted: Annotated[float, Field(ge=0, le=0.5)] = 0.0

    @field_validator("value")
    @classmethod
    def _known(cls, value: str) -> str:
        if value != "json" and not _FILE.fullmatch(value):
            raise ValueError("allowed: json, FILE.py:NAME, FILE.jsonl, FILE.parquet")
        return value

    @field_validator("id")
    @classmethod
    def _an_expression(cls, text: str) -> str:
        if text and contract.expression(text).named:
            raise ValueError("allowed: key, value, json: $.PATH, sql: EXPRESSION")
        return text


class OutputSpec(Strict):
    """A table `[outputs.TOPIC]` of a scenario: a topic that the application writes.

    - `jdbc`: the JDBC URL of a PostgreSQL database, if the application writes rows of a table there, and no topic. The
      name of the table is `{table:NAME}` in `[app]`. `{env:NAME}` in the URL, or in its place, is an environment
      variable, whose value is recorded nowhere; `{database}` is the database of the run (`workload.database`). A row
      is compared as if it were the value of a record, with a JSON field for each column; its column `key`, if it has
      one, is the key.
    - `input`: the id of the input that an output comes from: `key`, `value`, `json: $.PATH`, `header: NAME`, or
      `sql: EXPRESSION` over the output's `key` and `value`. Without it, outputs are not compared with inputs (level 0).
    - `each`: how many outputs an input has on this topic, such as `1`, `3` or `0..1`; a model that is compared with
      each output says it itself.
    - `order`: whether the outputs of one input partition are in its order, in each output partition (`per-partition`),
      or in any (`none`).
    - `partition`: whether an output is in the partition with the number of its input's (`input`), or in any (`any`).
    - `columns`: where an output has the columns of the model, in the forms of `input`. Without an entry, `key` and
      `value` are the output's own, as text, and any other column is a field of its JSON value.
    """

    jdbc: Annotated[str, Field(pattern=r"^(jdbc:postgresql:.+|\{env:\w+\}|\{database\})?$", max_length=1_000)] = ""
    input: str = ""
    each: str = "1"
    order: Literal["per-partition", "none"] = "per-partition"
    partition: Literal["any", "input"] = "any"
    columns: dict[Annotated[str, Field(pattern=r"^[A-Za-z_]\w{0,79}$")], str] = Field(default={})

    @field_validator("input")
    @classmethod
    def _an_expression(cls, text: str) -> str:
        if text:
            contract.expression(text)
        return text

    @field_validator("columns")
    @classmethod
    def _expressions(cls, columns: dict[str, str]) -> dict[str, str]:
        for text in columns.values():
            contract.expression(text)
        return columns

    @field_validator("each")
    @classmethod
    def _a_range(cls, text: str) -> str:
        least, most = _range(text)
        if not least <= most <= _EACH_MAX or not most:
            raise ValueError(f"allowed: a number from 1 to {_EACH_MAX}, or a range such as 0..1")
        return text

    @property
    def least(self) -> int:
        """The least number of outputs that an input has."""
        return _range(self.each)[0]


class ModelSpec(Strict):
    """The table `[model]` of a scenario: what is right, as Spark SQL over the inputs.

    - `sql`: a query on the view `inputs`, which has number, partition, offset, key and value (as text), and, of a JSON
      load, amount and text. With `compare = "each"` it returns `number`, and one row for each output of that input;
      with the others it returns `key`. All further columns are compared with the outputs, as text; `topic` names the
      topic if there are several.
    - `compare`: `each`, the outputs of each input; `final-per-key`, the last output of each key; or `steps`, all
      outputs of each key, in the order of its rows by `number`.
    """

    sql: Text
    compare: Compare = "each"


def _range(text: str) -> tuple[int, int]:
    """Return the least and the greatest number of outputs; (1, 0) if the text is no range."""
    found = _EACH.fullmatch(text)
    return (int(found[1]), int(found[2] or found[1])) if found else (1, 0)


def problem(load: LoadSpec, outputs: Mapping[str, OutputSpec], model: ModelSpec | None) -> str:
    """Return what does not fit together, as `key: problem`; empty if everything does."""
    identified = [topic for topic, each in outputs.items() if each.input]
    if identified and len(identified) < len(outputs):
        missing = next(topic for topic in outputs if topic not in identified)
        return f"outputs.{missing}.input: missing; allowed: in every table of outputs, or in none"
    if model is not None and model.compare == "each" and not identified:
        return f"outputs.{next(iter(outputs))}.input: missing; a model that is compared with each output needs it"
    if load.aborted and load.value.endswith((".jsonl", ".parquet")):
        return f"load.aborted: {load.aborted}; allowed with {load.value}: 0, since bait is made of further inputs"
    if load.id and not identified:
        return "load.id: not without `input` in [outputs], which says what is compared with it"
    if problem := _of_databases(outputs, model):
        return problem
    for name, kind in (("order", "order"), ("partition", "partition")):
        if len({getattr(each, kind) for each in outputs.values()}) > 1:
            return f"outputs: {name}: allowed: the same for all topics"
    for topic, each in outputs.items():
        texts = (each.input, *each.columns.values())
        named = {contract.expression(text).named for text in texts if text} - {""}
        if len(named) > 1:
            return f"outputs.{topic}: headers {', '.join(sorted(named))}; allowed: one header for each topic"
    return ""


def _of_databases(outputs: Mapping[str, OutputSpec], model: ModelSpec | None) -> str:
    stored = {name for name, each in outputs.items() if each.jdbc}
    if stored and len(stored) < len(outputs):
        missing = next(name for name in outputs if name not in stored)
        return f"outputs.{missing}.jdbc: missing; allowed: in every table of outputs, or in none"
    for name in stored:
        for key in {"order", "partition"} & outputs[name].model_fields_set:
            return f"outputs.{name}.{key}: not with jdbc, since rows have no order and no partition"
    if stored and model is not None and model.compare == "steps":
        return "model.compare: steps; allowed with jdbc: each, final-per-key, since rows have no order"
    return ""


def workload(load: LoadSpec, outputs: Mapping[str, OutputSpec], model: ModelSpec | None, app: AppSpec) -> Workload:
    """Return the workload that these tables describe."""
    first = next(iter(outputs.values()))
    made = Contract(
        load=load.value,
        id=contract.expression(load.id).sql if load.id else "",
        ids={topic: contract.expression(each.input) for topic, each in outputs.items() if each.input},
        columns={
            topic: {name: contract.expression(text) for name, text in each.columns.items()}
            for topic, each in outputs.items()
        },
        model="" if model is None else model.sql,
        compare="each" if model is None else model.compare,
        same_partition=first.partition == "input",
        in_order=first.order == "per-partition" and not first.jdbc,
        databases={name: each.jdbc for name, each in outputs.items() if each.jdbc},
    )
    return Workload(
        name="application",
        about="What the tables [outputs] and [model] of the scenario say.",
        expected=_expected(outputs, made),
        topics=() if first.jdbc else tuple(outputs),
        tables=tuple(made.databases),
        claim=app.claim,
        wiring=Wiring(assignment=app.assignment),
        identity="0L",
        contract=made,
    )


def _expected(outputs: Mapping[str, OutputSpec], made: Contract) -> str:
    """Return `Declaration.expected`. What outputs contain is compared by the check `model`, so their digest is 0."""
    partition = "partition" if made.same_partition else "-1 AS partition"
    if made.model and made.compare == "each":
        return f"SELECT topic, {partition}, number, 0L AS digest, input FROM inputs JOIN modelled USING (number)"
    optional = "named_struct('partition', input.partition, 'offset', input.offset, 'least', 0)"
    return " UNION ALL ".join(
        f"SELECT '{topic}' AS topic, {partition}, number, 0L AS digest, {which} AS input FROM inputs"
        for topic, (least, most) in ((topic, _range(each.each)) for topic, each in outputs.items())
        for which in ["input"] * least + [optional] * (most - least)
    )
