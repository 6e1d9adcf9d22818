"""The contract of an application, as data: what its outputs are compared with, in three levels.

    level 0    nothing: only the log and the requests are judged
    level 1    which input each output comes from (`ids`), and how many outputs an input has
    level 2    a model in Spark SQL of what the outputs must contain (`model`)

Every input has a record header `input-number` with its number, in decimal digits. An application need not look at it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

# `__pydantic_config__` of a class. Workers load the class but not pydantic, which would double their start.
NO_OTHER_FIELDS = {"extra": "forbid"}
NUMBER = "input-number"
BAIT = 10**11  # the number of the first input that is aborted on purpose
Level = Literal[0, 1, 2]
Compare = Literal["each", "final-per-key", "steps"]
_KINDS = "key, value, json: $.PATH, header: NAME, sql: EXPRESSION"
_PATH = re.compile(r"\$[^'\\\x00-\x1f]+")
_HEADER = re.compile(r"[^\x00-\x1f]{1,200}")


@dataclass(frozen=True, kw_only=True)
class Expression:
    """Spark SQL over the `key` and `value` of a record (binary) and `header`, the value of its header of that name.

    `named` is the name of that header; empty if none is read. If a record has several headers of that name, `header` is
    the value of the last one.
    """

    __pydantic_config__ = NO_OTHER_FIELDS
    sql: str
    named: str = ""


def expression(text: str) -> Expression:
    """Return the expression that a scenario writes in one of these forms. Raises ValueError for any other text.

    `key` and `value` as text; `json: $.order.id`, a field of a JSON value; `header: source`, a header as text;
    `sql: cast(conv(hex(value), 16, 10) AS bigint)`, any expression.
    """
    kind, _, rest = (part.strip() for part in text.partition(":"))
    if kind in ("key", "value") and not rest:
        return Expression(sql=f"cast({kind} AS string)")
    if kind == "json" and _PATH.fullmatch(rest):
        return Expression(sql=f"get_json_object(cast(value AS string), '{rest}')")
    if kind == "header" and _HEADER.fullmatch(rest):
        return Expression(sql="cast(header AS string)", named=rest)
    if kind == "sql" and rest:
        return Expression(sql=rest)
    raise ValueError(f"{text!r:.80}: allowed: {_KINDS}")


@dataclass(frozen=True, kw_only=True)
class Contract:
    """What the outputs of an application are compared with.

    `load`             what the values of the inputs are: `json`, or the name of the file that made them
    `id`               Spark SQL over the `key` and `value` of an input: its id, as text; empty if its number is the id
    `ids`              topic → the id of the input that an output comes from; empty at level 0
    `columns`          topic → the columns of its outputs that the model names, unless they are `key`, `value` or a
                       field of a JSON value of that name
    `databases`        the name of a table → the JDBC URL of its database; for outputs that are rows, not records
    `model`            Spark SQL over the view `inputs(number, partition, offset, key, value)`, with key and value as
                       text, and `amount` and `text` of a JSON load; empty below level 2
    `compare`          what is compared with the rows of the model: the outputs of each input, the last output of each
                       key, or all outputs of each key in their order
    `same_partition`   whether an output is in the partition with the number of its input's
    `in_order`         whether the outputs of an input partition are in its order, in each output partition
    """

    __pydantic_config__ = NO_OTHER_FIELDS
    load: str = "json"
    id: str = ""
    ids: Mapping[str, Expression] = field(default_factory=dict)
    columns: Mapping[str, Mapping[str, Expression]] = field(default_factory=dict)
    databases: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    compare: Compare = "each"
    same_partition: bool = False
    in_order: bool = True

    @property
    def level(self) -> Level:
        """The level of proof that the contract allows."""
        return 2 if self.model else 1 if self.ids else 0

    def column(self, topic: str, name: str) -> Expression:
        """Return where an output of a topic has a column of the model."""
        found = self.columns.get(topic, {}).get(name)
        return found or expression(name if name in ("key", "value") else f"json: $.{name}")

    def header(self, topic: str) -> str:
        """Return the name of the header of a topic's outputs that is read; empty if there is none."""
        mine = [self.ids[topic]] if topic in self.ids else []
        return next((each.named for each in (*mine, *self.columns.get(topic, {}).values()) if each.named), "")
