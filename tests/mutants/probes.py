"""Where a condition decides something: only there can a mutant show that it is needed.

    probes = Probes({("coordinator", 7), ("coordinator", 8)})
    with probes.placed():                       the modules, with a probe at each of these conditions
        probes.folder = folder
        ...                                     the folder is judged
    probes.seen("coordinator", 7)               the folders in which the value differed from that without the condition

A probe evaluates a condition together with what would stand in its place, and goes on with the condition's own value.
Of frames, the numbers of rows are compared, since a condition less leaves rows out or lets more of them through. A
condition within a column or within the text of an expression has no value of its own here, and is no `probed` one.
"""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame

from tests.mutants.variants import conditions, load, module_of, options, source_of

Condition = tuple[str, int]  # a module, and the number of the condition in it
_PROBE = "_probe"


class Probes:
    """The probes of some conditions. `folder` is what is judged now. No more than `most` folders are seen for each."""

    def __init__(self, wanted: set[Condition], most: int) -> None:
        self._most = most
        self.folder: Path | None = None
        self.probed: set[Condition] = set()
        self._wanted = wanted
        self._seen: dict[Condition, list[Path]] = defaultdict(list)

    def seen(self, module: str, number: int) -> list[Path]:
        """The folders in which a condition decides something, a few of them at most."""
        return self._seen[module, number]

    @property
    def open(self) -> int:
        """How many conditions have been seen to decide nothing yet."""
        return sum(not self._seen[each] for each in self.probed)

    @contextmanager
    def placed(self) -> Iterator[None]:
        """The modules have probes while the block runs."""
        modules = {name: source_of(name) for name in sorted({name for name, _ in self._wanted})}  # a base class first
        try:
            for name, source in modules.items():
                module_of(name).__dict__[_PROBE] = self._of(name)
                load(module_of(name), self._with_probes(name, source))
            yield
        finally:
            for name, source in modules.items():
                load(module_of(name), source)

    def _of(self, module: str) -> Callable[..., Any]:
        def probe(value: Any, *others: tuple[int, Callable[[], Any]]) -> Any:
            for number, other in others:
                seen = self._seen[module, number]
                if self.folder is None or self.folder in seen or len(seen) >= self._most:
                    continue
                if _differs(value, other):
                    seen.append(self.folder)
            return value

        return probe

    def _with_probes(self, module: str, source: str) -> ast.Module:
        """The module with a probe at each condition that has a value of its own."""
        tree = ast.parse(source)
        nodes = list(ast.walk(tree))
        at: dict[ast.AST, list[tuple[int, int]]] = defaultdict(list)
        for number, (index, choice, _, _) in enumerate(conditions(source)):
            if (module, number) in self._wanted:
                at[nodes[index]].append((number, choice))
        placing = _Placing({node: (choices, deepcopy(node)) for node, choices in at.items()})
        made: ast.Module = ast.fix_missing_locations(placing.visit(tree))
        self.probed |= {(module, number) for number in placing.placed}
        return made


class _Placing(ast.NodeTransformer):
    """Puts a probe around each of these nodes, whose copies give the options."""

    def __init__(self, at: dict[ast.AST, tuple[list[tuple[int, int]], ast.AST]]) -> None:
        self._at = at
        self.placed: set[int] = set()

    def visit(self, node: ast.AST) -> Any:
        """The node with probes in it, and around it if it is a condition."""
        choices, copy = self._at.get(node, ([], None))
        made = self.generic_visit(node)
        if not choices or copy is None:
            return made
        without = [(number, options(copy)[choice][1]) for number, choice in choices]
        if isinstance(made, ast.If | ast.IfExp):
            made.test = self._probe(made.test, [(number, each.test) for number, each in without], truth=True)  # type: ignore[attr-defined]
        elif isinstance(made, ast.comprehension):
            for number, choice in choices:
                made.ifs[choice] = self._probe(made.ifs[choice], [(number, ast.Constant(True))], truth=True)
        elif isinstance(made, ast.BoolOp):
            return self._probe(made, without, truth=True)
        elif isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr not in _COLUMNS:
            return self._probe(made, without, truth=False)
        return made

    def _probe(self, value: ast.expr, without: list[tuple[int, Any]], *, truth: bool) -> ast.Call:
        self.placed |= {number for number, _ in without}
        pairs: list[ast.expr] = [
            ast.Tuple([ast.Constant(number), ast.Lambda(_NOTHING, _bool(each) if truth else each)], ast.Load())
            for number, each in without
        ]
        return ast.Call(ast.Name(_PROBE, ast.Load()), [value, *pairs], [])


_COLUMNS = ("expr", "when")  # calls that make columns
_NOTHING = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])


def _bool(value: ast.expr) -> ast.expr:
    return ast.Call(ast.Name("bool", ast.Load()), [value], [])


def _differs(value: Any, other: Callable[[], Any]) -> bool:
    """Whether the value without the condition is another one. What fails without the condition is another one, too."""
    try:
        without = other()
        if isinstance(value, DataFrame):
            return bool(value.count() != without.count())
        if isinstance(value, Column):
            return True
        return bool(bool(value) != without if isinstance(without, bool) else value != without)
    except Exception:
        return True
