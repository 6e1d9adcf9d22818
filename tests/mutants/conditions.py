"""Takes single conditions out of the verifiers, one at a time, and asks whether a mutant is then judged otherwise.

    python -m tests.mutants.conditions [MODULE …] [--table FILE [--new [--folders N]]]

Of a table that is there, these modules' rows are written anew; with `--new` only the conditions that it does not have
are judged, and the others' rows stay: for the time between two whole passes. With `--folders 4` each of them is tried
on four folders of mutants at most, and remains without a row if that does not show that it is needed.

What counts is what the checks say that rest on the module: other findings in some mutant, other reasons for `unknown`
in a folder of them, or a failure. Where all mutants together are judged as before, a few are judged alone: in a folder
with mutants nothing fits at once, so what a verifier does with a run in which all is well shows only there. The mutants
that a table names for a condition, and for those beside it in its module, are judged first, alone. A condition that no
mutant needs is listed, exit 1. At first every folder is judged once with probes at the conditions: a condition that has
a value of its own is tried only where that value decided something.

The modules that `removed` names are judged by their own tests.
"""

import argparse
import ast
import importlib
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from importlib.metadata import entry_points
from itertools import chain, islice
from pathlib import Path
from unittest.mock import patch

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from onceproof.verifiers import hidden
from onceproof.verifiers.evidence import findings
from onceproof.verifiers.evidence import spark as sessions
from onceproof.verifiers.evidence.check import Check
from onceproof.verifiers.levels import FOUND_BY
from tests.mutants.catalogue import MUTANTS, Mutant
from tests.mutants.probes import Probes
from tests.mutants.removed import TESTED, failing
from tests.mutants.run import Packs
from tests.mutants.variants import Variant, load, module_of, variants
from tests.packing import Found, judge_each, together

MODULES = (
    "acknowledged",
    "aggregate",
    "atomicity",
    "completeness",
    "coordinator",
    "evidence.bare",
    "evidence.causes",
    "evidence.facts",
    "evidence.fingerprints",
    "evidence.membership",
    "evidence.spans",
    "evidence.suspects",
    "evidence.tables",
    "exactly_once",
    "history",
    "inputs",
    "offsets",
    "order",
    "protection",
    "readers",
    "replicas",
    "transactions",
    "zombies",
    *TESTED,
)

_NOBODY = "**nobody**"
_BESIDE = 8  # mutants of conditions beside this one
_PACK = 20  # mutants: more of them answer later, fewer of them in all later still

_HEAD = """# Conditions

Removing any one condition from a verifier must change the result for at least one mutant ([mutants](mutants.md)). `make
conditions` removes them one by one and writes this table. A condition that no mutant needs has **nobody** in the last
column, and the command fails. A condition of a module that reads the logs, pins offsets, waits until a run is at rest,
matches spans with decisions, judges what is matched, or follows inputs through a chain must change the result of a unit
test instead, which the last column names.
"(what is said of 16 together)" means that the reasons for `unknown` of 16 mutants in one folder change; "(fails: …)"
means that a check raises. Lines marked `# speed` in the source decide how fast a verdict is reached and not which one,
and are not removed. {judged} of {all} conditions have been judged.

| verifier | line | removed | results that change |
|---|---|---|---|
"""


_ROOT = "onceproof.verifiers"


@cache
def _imported(name: str) -> frozenset[str]:
    """The verifiers' modules that this one uses, itself and all that those use among them."""
    tree = ast.parse(Path(str(module_of(name).__file__)).read_text())
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    named = [f"{node.module}.{alias.name}" for node in froms for alias in node.names] + [str(n.module) for n in froms]
    direct = {each.removeprefix(f"{_ROOT}.") for each in named if each.startswith(f"{_ROOT}.")}
    return frozenset({name}.union(*(_imported(each) for each in direct & set(MODULES) - {name})))


def _now() -> list[Check]:
    """The checks as their modules have them now, since a module that was loaded again has another one."""
    registered = entry_points(group="onceproof.checks")
    return [importlib.import_module(each.module).CHECK for each in registered]


def _own_first(module: str) -> list[list[str]]:
    """The names of the checks that use the module: those that it contains, which take a part of the time, and then the
    others."""
    using = [(check.run.__module__.removeprefix(f"{_ROOT}."), check.name) for check in _now()]
    own = [name for where, name in using if where == module]
    others = [name for where, name in using if where != module and module in _imported(where)]
    return [names for names in (own, others) if names]


def _classes(checks: Container[str]) -> list[str]:
    """The classes of anomalies that some of these checks find."""
    return [cls for cls, found_by in FOUND_BY.items() if any(name in checks for name in found_by)]


class Judged:
    """All mutants: in packs, and some alone; judged by some checks, and compared with what these said at first."""

    def __init__(self, work: Path, told: Sequence[Sequence[str]], most: int | None = None) -> None:
        """`told` has the rows of a table. `most` folders are tried for each condition; None for all of them."""
        self._work, self._told, self._most = work, told, most
        self._right: dict[Path, dict[str, list[Found]]] = {}
        self._latest: list[Path] = []
        self._probes = Probes(set(), 0)

    @cached_property
    def _packs(self) -> list[tuple[Path, list[str], Counter[str]]]:
        """The folders, the mutants in each, and how many of them there are of each class."""
        made = Packs(self._work / "packs", most=_PACK).made
        return [
            (
                folder,
                [mutant.name for mutant, _ in mutants],
                Counter(chain.from_iterable(wanted for _, wanted in mutants)),
            )
            for folder, mutants in made
        ]

    def probe(self, conditions: Sequence[Variant]) -> None:
        """Judge every folder once, to see where each of these conditions decides something."""
        wanted = {(each.module, each.number) for each in conditions if each.module not in TESTED}
        if not wanted:
            return
        self._probes = Probes(wanted, self._most or sys.maxsize)
        using = {name for module, _ in wanted for name in _own_first(module)[0]}
        folders = [(folder, len(names)) for folder, names, _ in self._packs]
        folders += [(folder, 1) for folder, _ in map(self._alone, _few())]
        with self._probes.placed():
            for number, (folder, cases) in enumerate(folders, 1):
                self._probes.folder = folder
                _judged(folder, cases, [check for check in _now() if check.name in using])
                left = f"{self._probes.open} of {len(self._probes.probed)} conditions decide nothing so far"
                print(f"probes {number}/{len(folders)}: {left}", flush=True)  # noqa: T201

    def otherwise(self, variant: Variant) -> str:
        """The mutants that are judged otherwise without the condition, or what failed; empty when there are none."""
        if variant.module in TESTED:
            return failing(variant.module, variant.number)
        for checks in _own_first(variant.module):
            for folder, names in islice(self._folders(variant, checks), self._most):
                if wrong := self._wrong(folder, names, variant, checks):
                    self._latest = [*self._latest[-4:], folder]
                    return ", ".join(wrong[:3]) + (f" and {len(wrong) - 3} more" if len(wrong) > 3 else "")
        return ""

    def _folders(self, variant: Variant, checks: Container[str]) -> Iterator[tuple[Path, list[str]]]:
        """What to judge, in the order in which an answer of these checks is likely: a folder, and the mutants in it."""
        if (variant.module, variant.number) in self._probes.probed:
            names_in = {folder: names for folder, names, _ in self._packs}
            for folder in self._probes.seen(variant.module, variant.number):
                yield folder, names_in.get(folder, [folder.name])
            return
        yield from map(self._alone, self._hints(variant))
        classes = _classes(checks)

        def hopeful(each: tuple[Path, list[str], Counter[str]]) -> tuple[int, int, int]:
            folder, names, found = each
            return self._latest.count(folder), sum(found[cls] for cls in classes), len(names)

        for folder, names, _ in sorted(self._packs, key=hopeful, reverse=True):
            yield folder, names
        yield from map(self._alone, _few())

    def _hints(self, variant: Variant) -> list[Mutant]:
        """The mutants that the table names for this condition, and the first that it names for each beside it."""
        told = [row for row in self._told if row[0] == variant.module]
        beside = sorted(told, key=lambda row: (row[2] != _cell(variant), abs(int(row[1]) - variant.line)))
        names = dict.fromkeys(row[3].partition(",")[0].partition(" and ")[0] for row in beside)
        return [MUTANTS[name] for name in names if name in MUTANTS][:_BESIDE]

    def _alone(self, mutant: Mutant) -> tuple[Path, list[str]]:
        folder = self._work / "alone" / mutant.name
        if not folder.exists():
            mutant.make()[0].write(folder)
        return folder, [mutant.name]

    def _wrong(self, folder: Path, names: list[str], variant: Variant, by: Container[str]) -> list[str]:
        """What in this folder is judged otherwise by these checks, or what failed."""
        known = self._right.setdefault(folder, {})
        if new := [check for check in _now() if check.name in by and check.name not in known]:
            known |= _judged(folder, len(names), new)
        if all(right[0].idle for name, right in known.items() if name in by):
            return []  # none of them has anything to judge in this folder
        try:
            with _taken_out(variant):
                each = _judged(folder, len(names), [check for check in _now() if check.name in by])  # loaded again
        except Exception as error:
            return [f"(fails: {type(error).__name__})"]
        now = together(each, len(names))
        right = together({name: self._right[folder][name] for name in each}, len(names))
        wrong = [name for name, was, then in zip(names, right, now, strict=True) if was != then]
        if not wrong and right[0].reasons != now[0].reasons:
            return names if len(names) == 1 else [f"(what is said of {len(names)} together)"]
        return wrong


def _judged(folder: Path, cases: int, checks: Sequence[Check]) -> dict[str, list[Found]]:
    """What is found, without what stands around it in the log. A failure of Spark's is the module's only when a new
    session fails as well."""
    with (
        patch.object(findings, "_with_batches", lambda _, samples: samples),
        patch.object(hidden, "beside", lambda _, __, samples: list(samples)),
    ):
        try:
            return judge_each(folder, _session(), cases, checks)
        except AnalysisException:
            raise
        except (Py4JError, PySparkException, OSError):
            sessions.stop()
            return judge_each(folder, _session(), cases, checks)


def _session() -> SparkSession:
    """Spark's session, told to interpret its plans: compiling them takes longer than these few rows do."""
    spark = sessions.session()
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return spark


@cache
def _few() -> list[Mutant]:
    """One mutant for each set of classes in each recorded run and mode."""
    kinds: dict[tuple[str, ...], Mutant] = {}
    for each in MUTANTS.values():
        kinds.setdefault((each.run, each.mode, *sorted(each.make()[1])), each)
    return list(kinds.values())


@contextmanager
def _taken_out(variant: Variant) -> Iterator[None]:
    """The module with one condition less, while the block runs."""
    module = module_of(variant.module)
    original = Path(str(module.__file__)).read_text()
    load(module, variant.tree)
    try:
        yield
    finally:
        load(module, original)


def _line(variant: Variant, by: str, seconds: float) -> str:
    word = "caught    " if by else "NOT CAUGHT"
    return f"{word} {variant.module}.py:{variant.line}: {variant.says}: {by}  ({seconds:.0f} s)"


def _told(table: Path | None) -> list[list[str]]:
    """The rows of a table that is there: verifier, line, what was taken out, who is judged otherwise then."""
    lines = table.read_text().splitlines() if table and table.exists() else []
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in rows if row[0] in MODULES]


def _cell(variant: Variant) -> str:
    return variant.says.replace("|", "∣").strip()


def _write(table: Path, rows: Iterable[Sequence[str]], conditions: Iterable[Variant]) -> None:
    """The table of these rows, each at the line where its condition stands now, without those of conditions that are no
    longer there."""
    there: dict[tuple[str, str], list[int]] = defaultdict(list)
    for each in conditions:
        there[each.module, _cell(each)].append(each.line)
    order, count, lines = list(there), sum(map(len, there.values())), []
    for module, _, says, by in sorted(
        (row for row in rows if (row[0], row[2]) in there), key=lambda row: order.index((row[0], row[2]))
    ):
        if there[module, says]:
            lines.append(f"| {module} | {there[module, says].pop(0)} | {says} | {by} |")
    table.write_text(_HEAD.format(judged=len(lines), all=count) + "\n".join(lines) + "\n")


def _unjudged(told: Sequence[Sequence[str]], conditions: Sequence[Variant]) -> list[Variant]:
    """The conditions that a table does not have, or for which it has no mutant."""
    there = Counter((each.module, _cell(each)) for each in conditions)
    judged = Counter((row[0], row[2]) for row in told if row[3] != _NOBODY)
    return [each for each in conditions if judged[each.module, _cell(each)] < there[each.module, _cell(each)]]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--new", action="store_true", help="only the conditions that the table does not have")
    parser.add_argument(
        "--folders", type=int, metavar="N", help="with --new: try at most N folders of mutants for each"
    )
    options = parser.parse_args()
    if options.folders and not options.new:
        parser.error("--folders needs --new")
    if options.new and not (options.table and options.table.exists()):
        parser.error("--new needs --table FILE, a table that is there")
    if strange := set(options.modules) - set(MODULES):
        parser.error(f"unknown modules {', '.join(sorted(strange))}; allowed: {', '.join(MODULES)}")
    return options


def main() -> int:
    options = _options()
    told, conditions = _told(options.table), list(chain.from_iterable(map(variants, MODULES)))
    todo = [
        each
        for each in (_unjudged(told, conditions) if options.new else conditions)
        if each.module in (options.modules or MODULES)
    ]
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as work:
        mutants = Judged(Path(work), told, options.folders)
        mutants.probe(todo)
        for number, variant in enumerate(todo, 1):
            started = time.monotonic()
            by = mutants.otherwise(variant)
            if by or not options.folders:
                rows.append([variant.module, str(variant.line), _cell(variant), by or _NOBODY])
            print(f"{number}/{len(todo)}", _line(variant, by, time.monotonic() - started), flush=True)  # noqa: T201
            if options.table:
                again = {(row[0], row[2]) for row in rows}
                others = (row for row in told if (row[0], row[2]) not in again)
                _write(options.table, [*others, *rows], conditions)
    sessions.stop()
    uncaught = sum(row[-1] == _NOBODY for row in rows)
    print(f"{len(rows)} conditions, {uncaught} that no mutant needs")  # noqa: T201
    return 1 if uncaught else 0


if __name__ == "__main__":
    sys.exit(main())
