"""The documentation says what the code says: a reference of every key, and examples that are accepted."""

import inspect
import re
import textwrap
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from onceproof.cli import main, reference
from onceproof.harness.model import registry
from onceproof.harness.model.scenario import FindingClass, Scenario, parse
from onceproof.harness.model.spec import Strict
from onceproof.harness.record import tables
from onceproof.harness.record.events import kinds

ROOT = Path(__file__).parents[2]
FAULTS = registry.names("fault")
WRITTEN = [ROOT / "README.md", *(ROOT / "docs" / name for name in ("writing-a-scenario.md", "extending.md"))]
ROW = re.compile(r"\b[FWNCP]\d{1,2}\b")


@cache
def pages() -> dict[str, str]:
    return reference.pages()


def models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """A model's subclasses, with those of these."""
    for each in model.__subclasses__():
        yield each
        yield from models(each)


@pytest.mark.parametrize("model", [*reference._SECTIONS.values(), *(registry.fault(name).params for name in FAULTS)])
def test_every_key_is_described(model: type[BaseModel]) -> None:
    assert [key for key in model.model_fields if not reference.description(model, key)] == []


def test_no_description_is_of_a_key_that_is_gone() -> None:
    known: list[type[BaseModel]] = [Scenario, *models(Strict)]
    said = {model: set(re.findall(r"^- `(\w+)`: ", inspect.cleandoc(model.__doc__ or ""), re.M)) for model in known}
    assert {model.__name__: gone for model, keys in said.items() if (gone := keys - set(model.model_fields))} == {}


def test_every_key_of_a_scenario_is_in_the_reference() -> None:
    for model in reference._SECTIONS.values():
        for key in model.model_fields:
            assert f"\n| `{key}` | " in pages()["scenario.md"], f"{model.__name__}.{key}"


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_in_the_reference(name: str) -> None:
    section = pages()["faults.md"].partition(f"\n## `{name}`\n")[2].partition("\n## ")[0]
    assert f'name = "{name}"' in section
    for key in set(registry.fault(name).params.model_fields) - {"name", "at_s", "when", "after", "lasts_s"}:
        assert f"\n| `{key}` | " in section, key


def test_every_command_is_in_the_reference(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(["--help"])
    commands = re.findall(r"^    ([a-z]+)", capsys.readouterr().out, re.MULTILINE)
    assert len(commands) > 5
    for command in commands:
        assert f"\n## `onceproof {command}`\n" in pages()["commands.md"]
    for option in ("--seed", "--against", "--chaos-seed", "--chaos-runs"):
        assert f"\n| `{option}` | " in pages()["commands.md"]


def test_every_event_and_table_is_in_the_reference() -> None:
    page = pages()["events-and-tables.md"]
    for kind in kinds():
        assert f"\n| `{kind}` | " in page
    for each in vars(tables).values():
        if isinstance(each, tables.Table):
            assert re.search(rf"\n### `{each.name}`\n\n[A-Z].+\n\n\| column ", page), each.name


def test_types_are_said_in_words() -> None:
    def row(page: str, key: str) -> list[str]:
        [found] = re.findall(rf"^\| `{key}` \| (.*) \|$", pages()[page], re.MULTILINE)[:1]
        return [str(cell) for cell in found.split(" | ")[:2]]

    assert row("scenario.md", "workers") == ["integer, 1 to 4", "`2`"]
    assert row("scenario.md", "records") == ["integer, 1 to 100_000_000", "`50_000`"]
    assert row("scenario.md", "auto_offset_reset") == ["one of `earliest`, `latest`", '`"earliest"`']
    assert row("scenario.md", "issue") == ["string", "required"]
    assert row("faults.md", "lasts_s") == ["number, more than 0, at most 600", "`5.0`"]
    assert row("faults.md", "to") == ["one of `behind`, `up-to`, `past`", "required"]
    assert row("events-and-tables.md", "sample")[0].startswith("`input_end`: integer<br>")


def test_no_page_names_the_rows_of_a_list_that_no_reader_has() -> None:
    made = {f"reference/{name}": text for name, text in pages().items()}
    written = {str(path): path.read_text() for path in [*WRITTEN, *(ROOT / "docs" / "concepts").glob("*.md")]}
    assert {name: ROW.findall(text) for name, text in {**made, **written}.items() if ROW.search(text)} == {}


def test_every_class_of_finding_is_explained() -> None:
    page = (ROOT / "docs" / "concepts" / "anomalies.md").read_text()
    for each in get_args(FindingClass):
        section = page.partition(f"\n### {each}\n")[2].partition("\n### ")[0]
        assert (
            "*Rests on*" in section
            and "*Excused by*" in section
            and "\nfound " in section.replace("   found", "\nfound")
        ), each


def scenarios() -> Iterator[Any]:
    """The scenarios that the pages show, but for those that need the example package to be installed."""
    for path in WRITTEN:
        for number, block in enumerate(
            re.findall(r"^ *```toml\n(.*?)^ *```", path.read_text(), re.MULTILINE | re.DOTALL)
        ):
            raw = "" if "--8<--" in block else textwrap.dedent(block)
            if {"name", "workload"} <= tomllib.loads(raw).keys() and '"roll-segments"' not in raw:
                yield pytest.param(raw, id=f"{path.name}-{number}")


@pytest.mark.parametrize("raw", list(scenarios()))
def test_every_scenario_that_a_page_shows_is_accepted(raw: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert parse(tomllib.loads(raw), where="page").faults


def test_pages_are_written(tmp_path: Path) -> None:
    assert reference.main([str(tmp_path / "new" / "folder")]) == 0
    assert {path.name for path in (tmp_path / "new" / "folder").iterdir()} == set(pages())


def test_the_examples_of_the_page_are_the_tested_files() -> None:
    """The page includes the files of the example package, and a formatter has not changed the markers."""
    page = (ROOT / "docs" / "extending.md").read_text()
    extras = ROOT / "docs" / "examples" / "onceproof-extras"
    for name in ("pyproject.toml", *(f"onceproof_extras/{part}.py" for part in ("fault", "check", "workload"))):
        assert (extras / name).is_file()
        assert f'--8<-- "examples/onceproof-extras/{name}"' in page
