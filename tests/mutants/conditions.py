"""Takes single conditions out of the verifiers, one at a time, and asks whether a mutant is then judged otherwise.

    python -m tests.mutants.conditions [MODULE …] [--table FILE]      of a table that is there, these modules' rows

What counts is what the checks say that rest on the module: other findings in some mutant, other reasons for `unknown`
in a folder of them, or a failure. Where all mutants together are judged as before, a few are judged alone: in a folder
with mutants nothing fits at once, so what a verifier does with a run in which all is well shows only there. A condition
that no mutant needs is listed, exit 1.
"""

import argparse
import ast
import importlib
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from harness import registry
from tests.mutants.catalogue import MUTANTS, Mutant
from tests.mutants.run import Packs
from tests.mutants.variants import Variant, variants
from tests.packing import Found, judge
from verifiers import findings, hidden
from verifiers import spark as sessions

MODULES = ("accounts", "aggregate", "atomicity", "causes", "completeness", "exactly_once", "inputs", "offsets",
           "order", "readers", "replicas", "summary", "tables", "transactions", "zombies")  # fmt: skip

_HEAD = """# Conditions

Each condition of each verifier, taken out alone, and the mutants (mutants.md) that are then judged otherwise. `make
conditions` does it and writes this table; a condition that no mutant needs has nobody in the last column, and fails it.
Lines marked `# speed` in the source decide how fast the answer comes, not which; they are left alone.

| verifier | line | taken out | then judged otherwise |
|---|---|---|---|
"""


@cache
def _imported(name: str) -> frozenset[str]:
    """The verifiers' modules that this one uses, itself and all that those use among them."""
    tree = ast.parse(Path(str(importlib.import_module(f"verifiers.{name}").__file__)).read_text())
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    direct = {alias.name for node in froms if node.module == "verifiers" for alias in node.names}
    direct |= {str(node.module).partition(".")[2] for node in froms if str(node.module).startswith("verifiers.")}
    return frozenset({name}.union(*(_imported(each) for each in direct & set(MODULES) - {name})))


def resting_on(module: str) -> list[Any]:
    """The checks that use the module, as they are now."""
    return [check for check in registry.checks() if module in _imported(check.__module__.rpartition(".")[2])]


def _names(module: str) -> tuple[str, ...]:
    return tuple(check.__module__ for check in resting_on(module))


class Judged:
    """All mutants: in packs, and some alone; judged by some checks, and compared with what these said at first."""

    def __init__(self, work: Path) -> None:
        packs = Packs(work)
        self._folders = [(folder, [mutant.name for mutant, _ in made]) for folder, made in packs.made]
        self._alone = [(each.make()[0].write(work / "alone" / each.name), [each.name]) for each in _few()]
        self._right: dict[tuple[Path, tuple[str, ...]], list[Found]] = {}
        self._latest: list[Path] = []

    def otherwise(self, variant: Variant) -> str:
        """The mutants that are judged otherwise without the condition, or what failed; empty when there are none."""
        folders = sorted(self._folders, key=lambda each: (-self._latest.count(each[0]), -len(each[1])))
        for folder, names in [*folders, *self._alone]:
            if wrong := self._wrong(folder, names, variant):
                self._latest = [*self._latest[-4:], folder]
                return ", ".join(wrong[:3]) + (f" and {len(wrong) - 3} more" if len(wrong) > 3 else "")
        return ""

    def _wrong(self, folder: Path, names: list[str], variant: Variant) -> list[str]:
        """What in this folder is judged otherwise, or what failed."""
        right = self._as_it_is(folder, len(names), variant.module)
        try:
            with _taken_out(variant):
                now = _judged(folder, len(names), variant.module)
        except Exception as error:
            return [f"(fails: {type(error).__name__})"]
        wrong = [name for name, was, then in zip(names, right, now, strict=True) if was != then]
        if not wrong and right[0].reasons != now[0].reasons:
            return names if len(names) == 1 else [f"(what is said of {len(names)} together)"]
        return wrong

    def _as_it_is(self, folder: Path, cases: int, module: str) -> list[Found]:
        """What is right: the folder judged by the module as it is."""
        key = folder, _names(module)
        if key not in self._right:
            self._right[key] = _judged(folder, cases, module)
        return self._right[key]


def _judged(folder: Path, cases: int, module: str) -> list[Found]:
    """What is found, without what stands around it in the log. A failure is the module's only when a new session fails
    as well."""
    with (
        patch.object(findings, "_with_batches", lambda _, samples: samples),
        patch.object(hidden, "beside", lambda _, __, samples: list(samples)),
    ):
        try:
            return judge(folder, sessions.session(), cases, resting_on(module))
        except Exception:
            sessions.stop()
            return judge(folder, sessions.session(), cases, resting_on(module))


def _few() -> Iterator[Mutant]:
    """One mutant for each set of classes in each recorded run and mode."""
    seen = set()
    for each in MUTANTS.values():
        kind = (each.run, each.mode, tuple(sorted(each.make()[1])))
        if kind not in seen:
            seen.add(kind)
            yield each


@contextmanager
def _taken_out(variant: Variant) -> Iterator[None]:
    """The module with one condition less, while the block runs."""
    module = importlib.import_module(f"verifiers.{variant.module}")
    original = Path(str(module.__file__)).read_text()
    _load(module, variant.tree)
    try:
        yield
    finally:
        _load(module, original)


def _load(module: ModuleType, code: Any) -> None:
    """Run a module's code again in its own namespace: whoever holds the module sees what it then is."""
    exec(compile(code, str(module.__file__), "exec"), module.__dict__)
    registry.checks.cache_clear()


def _line(variant: Variant, by: str, seconds: float) -> str:
    word = "caught    " if by else "NOT CAUGHT"
    return f"{word} {variant.module}.py:{variant.line}: {variant.says}: {by}  ({seconds:.0f} s)"


def _others(table: Path, modules: Collection[str]) -> list[str]:
    """What a table says of other modules."""
    lines = table.read_text().splitlines() if table.exists() else []
    kept = set(MODULES).difference(modules)
    return [line for line in lines if line.startswith("|") and _module_of(line) in kept]


def _module_of(row: str) -> str:
    return row.split("|")[1].strip()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    if strange := set(options.modules) - set(MODULES):
        parser.error(f"unknown modules {', '.join(sorted(strange))}; allowed: {', '.join(MODULES)}")
    modules = options.modules or MODULES
    rows, uncaught = [], 0
    with tempfile.TemporaryDirectory() as work:
        mutants = Judged(Path(work))
        for name in modules:
            for variant in variants(name):
                started = time.monotonic()
                by = mutants.otherwise(variant)
                uncaught += not by
                rows.append(f"| {name} | {variant.line} | {variant.says.replace('|', '∣')} | {by or '**nobody**'} |")
                print(_line(variant, by, time.monotonic() - started), flush=True)  # noqa: T201
    sessions.stop()
    if options.table:
        told = sorted([*_others(options.table, modules), *rows], key=lambda row: MODULES.index(_module_of(row)))
        options.table.write_text(_HEAD + "\n".join(told) + "\n")
    print(f"{len(rows)} conditions, {uncaught} that no mutant needs")  # noqa: T201
    return 1 if uncaught else 0


if __name__ == "__main__":
    sys.exit(main())
