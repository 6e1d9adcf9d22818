"""A verifier's source with one condition less, for each condition in it.

A condition is an operand of AND, OR, `and`, `or`, `&`, `|`; the whole of a filter; the test of an `if`; a semi or anti
join; a branch of a CASE, in Spark SQL too. A line that says `# speed` is left alone: it decides how fast the answer
comes, not which. Of one that says `# narrows` that is so for the whole filter: without it more is looked at, and
nothing more found.
Whether something is None is no condition, but plumbing, and so is the constant in `value or 0`.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

_ROOT = "onceproof"
_BASE, _DERIVED = "evidence.facts", "evidence.tables"
_TOKEN = re.compile(r"(\(|\)|,|\w+ ->|\bAND\b|\bOR\b)")
_HOLE = re.compile("\x00([0-9]+)\x00")
_BRANCH = re.compile(r"(?<=CASE WHEN ).*?(?= THEN )")


@dataclass(frozen=True)
class Variant:
    """A module's source with one condition less; `number` counts the conditions of the module from 0."""

    module: str
    number: int
    line: int
    says: str
    tree: ast.Module


def module_of(name: str) -> ModuleType:
    """Import a module by its name: below onceproof.verifiers, or whole."""
    return importlib.import_module(name if name.startswith(f"{_ROOT}.") else f"{_ROOT}.verifiers.{name}")


def load(module: ModuleType, code: Any) -> None:
    """Run a module's code again in its own namespace: whoever holds the module sees what it then is.

    A module with a class that is derived from one of this module's is run again as well.
    """
    exec(compile(code, str(module.__file__), "exec"), module.__dict__)
    if module is module_of(_BASE):
        load(module_of(_DERIVED), source_of(_DERIVED))


def source_of(module: str) -> str:
    """The source of a module, by its name."""
    return Path(str(module_of(module).__file__)).read_text()


def variants(module: str) -> Iterator[Variant]:
    """The module's source with one condition less, for each condition."""
    source = source_of(module)
    for number, (index, choice, line, says) in enumerate(conditions(source)):
        tree = ast.parse(source)
        target = list(ast.walk(tree))[index]
        _Replace(target, options(deepcopy(target))[choice][1]).visit(tree)
        yield Variant(module, number, line, says, ast.fix_missing_locations(tree))


def conditions(source: str) -> Iterator[tuple[int, int, int, str]]:
    """Each condition: the number of its node in the order of `ast.walk`, which of its options, its line, and a text."""
    lines, whole = source.splitlines(), ast.parse(source)
    parts = {part for node in ast.walk(whole) if isinstance(node, ast.JoinedStr) for part in node.values}
    for index, node in enumerate(ast.walk(whole)):
        if node in parts:
            continue
        place = node.ifs[0] if isinstance(node, ast.comprehension) and node.ifs else node
        line = _line(place)
        if "# speed" in lines[line - 1]:
            continue
        for choice, (says, _) in enumerate(options(node)):
            if "# narrows" in lines[getattr(place, "end_lineno", line) - 1] and says.endswith(": everything"):
                continue
            yield index, choice, line, says


def _line(node: ast.AST) -> int:
    """Where a node stands; of a call in a chain of calls, its own name and not the chain's begin."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.end_lineno or 1
    return getattr(node, "lineno", 1)


def options(node: ast.AST) -> list[tuple[str, ast.AST]]:
    """What can be taken out of a node: in words, and what is left of it."""
    if isinstance(node, ast.BoolOp):
        if isinstance(node.op, ast.Or) and isinstance(node.values[-1], ast.Constant | ast.Tuple):
            return []  # a value in the place of None
        return [
            (f"without {_short(value)}", ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0])
            for value in node.values
            if (rest := [each for each in node.values if each is not value])
        ]
    columns = "F." in ast.unparse(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr) and columns:
        return [(f"without {_short(node.left)}", node.right), (f"without {_short(node.right)}", node.left)]
    if isinstance(node, ast.If | ast.IfExp) and _of_none(node.test):
        return []
    if isinstance(node, ast.If):
        guard = isinstance(node.body[-1], ast.Return | ast.Continue) and not node.orelse
        return [
            (f"if {_short(node.test)}: {word}", ast.If(ast.Constant(word), node.body, node.orelse))
            for word in ((False,) if guard else (True, False))
        ]
    if isinstance(node, ast.IfExp):
        return [
            (f"{_short(node.test)}: taken as {word}", ast.IfExp(ast.Constant(word), node.body, node.orelse))
            for word in (True, False)
        ]
    if isinstance(node, ast.comprehension):
        return [
            (
                f"without `if {_short(each)}`",
                ast.comprehension(node.target, node.iter, [x for x in node.ifs if x is not each], node.is_async),
            )
            for each in node.ifs
        ]
    if isinstance(node, ast.Call):
        return _of_call(node)
    if isinstance(node, ast.Constant | ast.JoinedStr):
        text = _text(node)
        return [
            (
                f"no branch when {_shown(each[0])!r} in {_short(node)}",
                _text_node(f"{text[: each.start()]}false{text[each.end() :]}", node),
            )
            for each in _BRANCH.finditer(text)
        ]
    return []


def _without(node: ast.Call, keyword: ast.keyword) -> ast.Call:
    return ast.Call(node.func, node.args, [each for each in node.keywords if each is not keyword])


def _of_none(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is | ast.IsNot)


def _of_call(node: ast.Call) -> list[tuple[str, ast.AST]]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    last = node.args[-1] if node.args else None
    if name in ("of", "first", "the"):  # a query of events, by keys
        return [(f"without {each.arg}= in {_short(node)}", _without(node, each)) for each in node.keywords]
    if name == "join" and isinstance(last, ast.Constant) and last.value in ("left_semi", "left_anti"):
        assert isinstance(node.func, ast.Attribute)
        return [(f"without the {last.value.removeprefix('left_')} join with {_short(node.args[0])}", node.func.value)]
    if name in ("where", "expr") and isinstance(last, ast.Constant | ast.JoinedStr):
        less = _less(_text(last))
        found: list[tuple[str, ast.AST]] = [
            (f"{says} in {_short(last)}", _with(node, _text_node(text, last))) for says, text in less
        ]
        if name == "where":
            found.append((f"where {_short(last)}: everything", _with(node, ast.Constant("true"))))
        return found
    if name == "where" and last is not None:
        return [(f"where {_short(last)}: everything", _with(node, ast.Constant("true")))]
    if name == "when":
        never = ast.parse("F.lit(False)", mode="eval").body
        return [
            (
                f"no branch for {_short(last) if last else ''} when {_short(node.args[0])}",
                ast.Call(node.func, [never, *node.args[1:]], node.keywords),
            )
        ]
    return []


def _with(node: ast.Call, argument: ast.expr) -> ast.Call:
    return ast.Call(node.func, [*node.args[:-1], argument], node.keywords)


def _text(node: ast.Constant | ast.JoinedStr) -> str:
    """The text of an SQL string; what an f-string puts in is a hole with its number."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else f"\x00{index}\x00"
        for index, part in enumerate(node.values)
    )


def _shown(text: str) -> str:
    return _HOLE.sub("{}", text.strip())


def _text_node(text: str, like: ast.Constant | ast.JoinedStr) -> ast.expr:
    if isinstance(like, ast.Constant):
        return ast.Constant(text)
    pieces = _HOLE.split(text)  # text and hole in turns
    values = [like.values[int(piece)] if number % 2 else ast.Constant(piece) for number, piece in enumerate(pieces)]
    return ast.JoinedStr(values)


def _less(text: str) -> list[tuple[str, str]]:
    """An SQL condition without each of its operands, at every depth: what was taken, and what is left."""
    tokens = _TOKEN.split(text)
    found = []
    for connective in (index for index, token in enumerate(tokens) if token in ("AND", "OR")):
        for step in (-1, 1):
            left, right = _operand(tokens, connective, step)
            if step == 1 or not _preceded(tokens, left):
                taken = "".join(tokens[left:right])
                if step == -1:
                    low, high = left, connective + 1
                elif tokens[connective] == "OR" and tokens[right : right + 1] == ["AND"]:
                    low, high = left, right + 1  # a OR b AND c without b is a OR c
                else:
                    low, high = connective, right
                found.append((f"without {_shown(taken)!r}", "".join(tokens[:low] + tokens[high:])))
    return found


def _operand(tokens: list[str], connective: int, step: int) -> tuple[int, int]:
    """Where the operand beside a connective begins and ends."""
    depth, place = 0, connective + step
    while 0 <= place < len(tokens):
        token = tokens[place]
        ends = ")" if step == 1 else "("
        if depth == 0 and (token in ("AND", "OR", ",", ends) or token.endswith(" ->")):
            break
        depth += {"(": step, ")": -step}.get(token, 0)
        place += step
    return (connective + 1, place) if step == 1 else (place + 1, connective)


def _preceded(tokens: list[str], left: int) -> bool:
    """Whether a connective stands before: then this operand is the right one of that."""
    return left > 0 and tokens[left - 1] in ("AND", "OR")


def _short(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:90]


class _Replace(ast.NodeTransformer):
    def __init__(self, target: ast.AST, by: ast.AST) -> None:
        self._target, self._by = target, by

    def visit(self, node: ast.AST) -> Any:
        return self._by if node is self._target else self.generic_visit(node)
