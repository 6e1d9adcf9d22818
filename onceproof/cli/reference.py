"""The reference of the documentation: every key, option, event and table, from the code that reads or writes them.

    python -m onceproof.cli.reference docs/reference

    scenario.md             keys of a scenario, systems, workloads and checks
    faults.md               every registered fault with its keys
    commands.md             commands of the command line, options of pytest
    events-and-tables.md    what a run leaves in its history and in its tables
    json.md                 what commands write with --json

A key is described by its model, by `Field(description=…)` or by a line "- `key`: …" of the model's docstring. The
first paragraphs of the pages are in docs/reference.toml.
"""

import argparse
import inspect
import json
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from onceproof import pytest_plugin
from onceproof.cli.parser import parser as command_line
from onceproof.harness.context.fault import Drawn, SelfTimed
from onceproof.harness.model import registry
from onceproof.harness.model.app import AppSpec, JavaSpec
from onceproof.harness.model.bug import BugSpec, ClientErrorSpec, FixedSpec
from onceproof.harness.model.outputs import LoadSpec, ModelSpec, OutputSpec
from onceproof.harness.model.progress import DoneSpec
from onceproof.harness.model.scenario import CollectSpec, Expect, Scenario
from onceproof.harness.model.spec import ClusterSpec, FaultSpec, RandomSpec, When, WorkloadSpec
from onceproof.harness.record import events, results, tables
from onceproof.report import documents
from onceproof.suite.matrix import Cell
from onceproof.verifiers.evidence.check import Check

Schema = Mapping[str, Any]
_FIRST = Path(__file__).parents[2] / "docs" / "reference.toml"
_SECTIONS: Mapping[str, type[BaseModel]] = {
    "Top level": Scenario,
    "[cluster]": ClusterSpec,
    "[workload]": WorkloadSpec,
    "[app]": AppSpec,
    "[app.java]": JavaSpec,
    "[load]": LoadSpec,
    "[outputs.TOPIC]": OutputSpec,
    "[model]": ModelSpec,
    "[done]": DoneSpec,
    "[random]": RandomSpec,
    "[collect]": CollectSpec,
    "[expect]": Expect,
    "expect.client_error": ClientErrorSpec,
    "[bug]": BugSpec,
    "[[bug.fixed]]": FixedSpec,
}
_DOCUMENTS: Mapping[str, type] = {
    "`run` (a list) and `verify`": documents.JudgedRun,
    "Results": results.Results,
    "A finding": results.Finding,
    "A reason": results.Reason,
    "A check": results.CheckResult,
    "`matrix` (a list)": Cell,
    "`soak`": documents.SoakDocument,
    "`audit`": documents.AuditDocument,
}
_LIST_MAX = 5  # keys of a nested table that are named where the table is used
_PATTERN_MAX = 26


def pages() -> dict[str, str]:
    """Every page of the reference in Markdown, by its file's name."""
    return {
        "scenario.md": _page("Scenario keys", _scenario()),
        "faults.md": _page("Faults", _faults()),
        "commands.md": _page("Commands", _commands()),
        "events-and-tables.md": _page("Events and tables", _records()),
        "json.md": _page("JSON", _documents()),
    }


@cache
def _first(page: str) -> str:
    """The first paragraphs of a page or of its part. Raises FileNotFoundError outside a checkout."""
    return str(tomllib.loads(_FIRST.read_text(encoding="utf-8"))[page])


def _page(title: str, parts: Iterable[str]) -> str:
    return "\n\n".join([f"# {title}", *(part.strip("\n") for part in parts if part)]) + "\n"


def _scenario() -> Iterator[str]:
    yield _first("scenario")
    for heading, model in _SECTIONS.items():
        yield f"## {heading if heading == 'Top level' else f'`{heading}`'}\n\n{keys(model)}"
    systems = [registry.system(name) for name in registry.names("system")]
    rows = [(f"`{each.name}`", each.about, ", ".join(sorted(each.capabilities))) for each in systems]
    yield f"## Systems\n\n{_table(('system', 'what it is', 'capabilities'), rows)}"
    workloads = [(f"`{name}`", registry.workload(name).about) for name in registry.names("workload")]
    yield f"## Workloads\n\n{_table(('workload', 'what it is'), workloads)}"
    checks: list[Check] = [registry.get("check", name) for name in registry.names("check")]
    claims = [(f"`{each.name}`", each.claim, "; ".join(need.says for need in each.needs)) for each in checks]
    yield f"## Checks\n\n{_table(('check', 'claim', 'not judged if'), claims)}"


def _faults() -> Iterator[str]:
    yield _first("faults")
    yield f"## Keys of every fault\n\nExactly one of `at_s`, `when` and `after` must be given.\n\n{keys(FaultSpec)}"
    yield f"## Keys of `when` and `until`\n\n{keys(When)}"
    for name in registry.names("fault"):
        fault = registry.fault(name)
        yield f"## `{name}`\n\n{markdown(inspect.getmodule(type(fault)))}"
        yield keys(fault.params, besides=FaultSpec) or "It has no keys of its own."
        yield "\n".join(_abilities(fault))


def _abilities(fault: object) -> Iterator[str]:
    if isinstance(fault, SelfTimed):
        yield "The fault ends by itself."
    if isinstance(fault, Drawn):
        yield "It can be drawn by `[random]`."
    if needs := getattr(fault, "needs", None):
        yield f"It needs a system with these capabilities: {', '.join(sorted(needs))}."


# Keys of models


def keys(model: type[BaseModel], besides: type[BaseModel] | None = None) -> str:
    """A table of a model's keys, without those that `besides` has and describes alike; empty when none are left."""
    schema = model.model_json_schema()
    known = besides.model_json_schema()["properties"] if besides else {}
    rows = []
    for name, key in schema["properties"].items():
        if known.get(name) != key or f"- `{name}`:" in (model.__doc__ or ""):
            default = "required" if name in schema.get("required", ()) else _default(key.get("default"))
            rows.append((f"`{name}`", _type(key, schema.get("$defs", {})), default, description(model, name)))
    return _table(("key", "type", "default", "meaning"), rows) if rows else ""


def description(model: type[BaseModel], key: str) -> str:
    """What a key means, by its field or by the docstring of its model or of one that the model derives from. Empty if
    none of them says it.
    """
    if says := model.model_fields[key].description:
        return says
    for each in model.__mro__:
        said = re.search(rf"^- `{key}`: (.*(?:\n  .*)*)", inspect.cleandoc(each.__doc__ or ""), re.MULTILINE)
        if said:
            return _clean(" ".join(said[1].split()))
    return ""


def _type(schema: Schema, definitions: Schema) -> str:
    """A JSON schema in words."""
    if "$ref" in schema:
        return _type(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        parts = [definitions[each["$ref"].rpartition("/")[2]] if "$ref" in each else each for each in schema["anyOf"]]
        if all("enum" in each for each in parts):
            return _type({"enum": [value for each in parts for value in each["enum"]]}, definitions)
        kinds = dict.fromkeys(_type(each, definitions) for each in parts if each.get("type") != "null")
        return " or ".join(kind for kind in kinds if kind != "integer" or "number" not in kinds)
    if "enum" in schema:
        return f"one of {', '.join(f'`{each}`' for each in schema['enum'])}"
    if "const" in schema:
        return f"`{schema['const']}`"
    kind = schema.get("type", "table")
    if kind == "array":
        parts = [_type(each, definitions) for each in schema.get("prefixItems", ())]
        return f"[{', '.join(parts)}]" if parts else f"list of {_type(schema['items'], definitions)}"
    if kind == "object":
        names, values = schema.get("properties", {}), schema.get("additionalProperties")
        if isinstance(values, Mapping):
            inner = _type(values, definitions)
            return "table of tables" if inner.startswith("table") else f"table, values: {inner}"
        return f"table of {', '.join(f'`{name}`' for name in names)}" if 0 < len(names) <= _LIST_MAX else "table"
    if kind == "string":
        pattern = schema.get("pattern", "").removeprefix("^").removesuffix("$")
        return f"string matching `{pattern}`" if 0 < len(pattern) <= _PATTERN_MAX else "string"
    return _number(kind, schema)


def _number(kind: str, schema: Schema) -> str:
    low, high, above = (schema.get(name) for name in ("minimum", "maximum", "exclusiveMinimum"))
    if kind == "integer" and above is not None:
        low, above = above + 1, None
    if low is not None and high is not None:
        return f"{kind}, {low:_} to {high:_}"
    limits = (("more than", above), ("at least", low), ("at most", high))
    return ", ".join([kind, *(f"{says} {limit:_}" for says, limit in limits if limit is not None)])


def _default(value: object) -> str:
    """A default as TOML writes it; nothing for one that is empty."""
    text = f"{value:_}" if type(value) is int else json.dumps(value, default=str)
    return "" if text in ('""', "[]", "null") or isinstance(value, dict) else f"`{text}`"


# Commands


def _commands() -> Iterator[str]:
    yield _first("commands")
    [commands] = [each for each in command_line()._actions if isinstance(each, argparse._SubParsersAction)]
    for choice in commands._choices_actions:
        yield f"## `onceproof {choice.dest}`\n\n{_clean(choice.help or '')}."
        yield from _command(commands.choices[choice.dest])
    recorder: Any = _PytestOptions()
    pytest_plugin.pytest_addoption(recorder)
    yield f"## `pytest`\n\nOptions of the pytest plugin.\n\n{_options(recorder.parser)}"


def _command(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The options of a command, or its own commands with theirs."""
    nested = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    if not nested:
        yield _options(parser)
    for action in nested:
        for each in action._choices_actions:
            yield f"### `{parser.prog} {each.dest}`\n\n{_clean(each.help or '')}."
            yield _options(action.choices[each.dest])


class _PytestOptions:
    """Stands in for pytest's parser: collects a plugin's options, whose arguments are those of argparse."""

    def __init__(self) -> None:
        self.parser = argparse.ArgumentParser(add_help=False)

    def getgroup(self, _name: str, _description: str) -> "_PytestOptions":
        return self

    def addoption(self, *names: str, **settings: Any) -> None:
        self.parser.add_argument(*names, **settings)


def _options(parser: argparse.ArgumentParser) -> str:
    rows = []
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        says, _, told = (action.help or "").removesuffix(")").partition("(default: ")
        default = told or ("" if action.nargs == 0 else _default(action.default).replace('"', ""))
        name = action.option_strings[0] if action.option_strings else str(action.metavar or action.dest).upper()
        rows.append((f"`{name}`", _value(action), default, says.strip()))
    return _table(("argument", "value", "default", "meaning"), rows) if rows else "It has no options."


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return "flag"
    if action.choices:
        return f"one of {', '.join(f'`{each}`' for each in action.choices)}"
    kind = "integer" if action.type is int else "path" if action.type is Path else "text"
    named = f"`{action.metavar}`" if action.metavar else kind
    return f"{named}, several" if action.nargs in ("+", "*") else named


# Events and tables


def _records() -> Iterator[str]:
    yield _first("events")
    kinds = [each for each in vars(events).values() if inspect.isclass(each) and issubclass(each, events.Event)]
    rows = [(f"`{each.kind}`", _fields(each), markdown(each)) for each in kinds if vars(each).get("kind")]
    yield _table(("event", "keys", "meaning"), rows)
    yield _first("tables")
    source = inspect.getsource(tables)
    for name, table in vars(tables).items():
        if isinstance(table, tables.Table):
            comment = re.search(rf"((?:^# .*\n)+){name} = ", source, re.MULTILINE)
            says = " ".join(line[2:] for line in comment[1].splitlines()) if comment else ""
            columns = [(f"`{column}`", f"`{kind}`") for column, kind in table.columns.items()]
            yield f"### `{table.name}`\n\n{_clean(says)}\n\n{_table(('column', 'type'), columns)}"


def _documents() -> Iterator[str]:
    yield _first("json")
    for heading, document in _DOCUMENTS.items():
        yield f"## {heading}\n\n{markdown(document).split(chr(10))[0]}"
        schema = TypeAdapter(document).json_schema()
        rows = [
            (f"`{name}`", _type(key, schema.get("$defs", {})), _said(document, name))
            for name, key in schema["properties"].items()
        ]
        yield _table(("key", "type", "meaning"), rows)


def _said(document: type, key: str) -> str:
    """What a key of a dataclass means, by a line "- `key`: …" of its docstring, or one for several keys."""
    found = re.search(
        rf"^- (?:`\w+`, )*`{key}`(?:, `\w+`)*: (.*(?:\n  .*)*)", inspect.cleandoc(document.__doc__ or ""), re.MULTILINE
    )
    return _clean(" ".join(found[1].split())) if found else ""


def _fields(kind: type[events.Event]) -> str:
    schema = kind.model_json_schema()
    of_all = events.ProcessEvent if issubclass(kind, events.ProcessEvent) else events.Event
    own = {name: key for name, key in schema["properties"].items() if name not in of_all.model_fields}
    optional = {name: "" if name in schema.get("required", ()) else ", optional" for name in own}
    return "<br>".join(f"`{name}`: {_type(own[name], schema.get('$defs', {}))}{optional[name]}" for name in own)


def markdown(of: object) -> str:
    """The docstring of a module or class as Markdown: indented paragraphs, and those of TOML, as blocks of code."""
    parts = []
    for paragraph in re.split(r"\n\n(?=\S)", inspect.getdoc(of) or ""):
        text, _, code = paragraph.partition("\n\n")
        if re.match(r"\[\[|\w+ = ", text):
            text, code = "", paragraph
        parts += [text if text.startswith("- ") else _clean(" ".join(text.split()))] if text else []
        parts += [f"```{'toml' if '[[' in code else 'text'}\n{textwrap.dedent(code)}\n```"] if code else []
    return "\n\n".join(parts)


def _clean(text: str) -> str:
    """Without the number of a requirement, which says nothing here; with a capital letter at its beginning."""
    text = re.sub(r"^[A-Z]\d+(, [A-Z]\d+)*: | \([A-Z]\d+\)", "", text)
    return text[:1].upper() + text[1:]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [" | ".join(_cell(each) for each in row) for row in (heads, *rows)]
    return "\n".join(f"| {line} |" for line in (lines[0], " | ".join(["---"] * len(heads)), *lines[1:]))


def _cell(text: str) -> str:
    """Text as a table's cell: one line, in which only code has a pipe."""
    text = re.sub(r"(`[^`]*`)|\|", lambda found: found[1] or "\\|", text)
    return re.sub(r"\n+- ", "<br>• ", text).replace("\n\n", "<br>").replace("\n", " ")


def main(arguments: Sequence[str]) -> int:
    """Write the pages into a folder, which is made when it is not there."""
    folder = Path(*arguments)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
