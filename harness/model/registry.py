"""Finds faults, checks, workloads and systems, by their registered name or in a Python file.

    registry.fault("kill")                 an entry point of the group `onceproof.faults`
    registry.workload("orders.py:ORDERS")  the attribute ORDERS of a Python file

onceproof declares its own parts as entry points in pyproject.toml, as other packages do (docs/extending.md). So the
harness does not import the modules that are built on it.
"""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast

from onceproof.harness.base import foreign
from onceproof.harness.base.errors import BadInput, suggestion
from onceproof.harness.model.system import System
from onceproof.harness.model.workload import Workload

if TYPE_CHECKING:
    from onceproof.harness.model.spec import FaultSpec

Kind = Literal["fault", "check", "workload", "system", "load"]
_GROUPS: Mapping[Kind, str] = {
    "fault": "onceproof.faults",
    "check": "onceproof.checks",
    "workload": "onceproof.workloads",
    "system": "onceproof.systems",
    "load": "onceproof.loads",
}


# In the environment of the processes of a run, whose files have been tried.
TRIED = "ONCEPROOF_FILES_TRIED"
_TRIAL_DEADLINE_S = 60
_LOADED = b"loaded"
# The pipe is the only way to say that the file was loaded, since the file and what it registers at the exit may print.
_TRIAL = f"""
import os, sys
told, kind, name = int(sys.argv[1]), *sys.argv[2:4]
os.set_inheritable(told, False)
sys.path[:0] = sys.argv[4:]
try:
    from onceproof.harness.model import registry
    registry.part(kind, name)
except BaseException:
    pass  # the process that asks finds out itself
os.write(told, {_LOADED!r})
"""

Part = TypeVar("Part")


class FaultKind(Protocol):
    """The attributes of a fault that a plan needs. `harness/context/fault.py` has those that a run needs."""

    name: str
    about: str
    params: type["FaultSpec"]


@cache
def names(kind: Kind) -> tuple[str, ...]:
    """Return the registered names of a kind, sorted. Raises BadInput when a name is registered twice."""
    return tuple(sorted(_entries(kind)))


def fault(name: str) -> FaultKind:
    """Return a fault by its registered name or as `FILE.py:NAME`. Raises BadInput when there is none."""
    from onceproof.harness.model.spec import FaultSpec  # half of the start of a worker, which asks for no fault

    found = _get("fault", name)

    def complete() -> bool:
        params = getattr(found, "params", None)
        return isinstance(params, type) and issubclass(params, FaultSpec) and callable(getattr(found, "inject", None))

    if not foreign.call(_unusable("fault", name), complete):
        expected = "name, about, params (a FaultSpec) and inject"
        raise BadInput(f"fault {name!r}: expected {expected}; got {foreign.shown(found)}")
    return cast(FaultKind, found)


def workload(name: str) -> Workload:
    """Return a workload by its registered name or as `FILE.py:NAME`. Raises BadInput when there is none."""
    found = of_class("workload", name, Workload)
    if problem := foreign.call(_unusable("workload", name), lambda: str(found.problem() or "")):
        raise BadInput(f"workload {name!r}: {problem}")
    return found


def system(name: str) -> System:
    """Return a system by its registered name or as `FILE.py:NAME`. Raises BadInput when there is none."""
    return of_class("system", name, System)


def of_class(kind: Kind, name: str, wanted: type[Part]) -> Part:
    """Return a part by its registered name or as `FILE.py:NAME`. Raises BadInput unless it is of this class."""
    found = _get(kind, name)
    if not foreign.call(_unusable(kind, name), lambda: isinstance(found, wanted)):
        raise BadInput(f"{kind} {name!r}: expected a {wanted.__name__}; got {foreign.shown(found)}")
    return cast(Part, found)


def part(kind: Kind, name: str) -> Any:
    """Return a part, examined as far as its kind can be here. Raises BadInput when there is none."""
    examine: Mapping[Kind, Callable[[str], Any]] = {"fault": fault, "workload": workload, "system": system}
    return examine[kind](name) if kind in examine else get(kind, name)


def get(kind: Kind, name: str) -> Any:
    """Return a part of any kind without checking its type. Raises BadInput when there is none."""
    return _get(kind, name)


def _unusable(kind: Kind, name: str) -> str:
    return f"{kind} {name!r}: it cannot be used"


@cache
def _get(kind: Kind, name: str) -> Any:
    if ":" in name:
        return _from_file(kind, name)
    found = _entries(kind).get(name)
    if found is None:
        alike = suggestion(name, names(kind))
        raise BadInput(f"unknown {kind} {name!r}{alike}; allowed: {', '.join(names(kind))}, or FILE.py:NAME")
    return foreign.call(f"{kind} {name!r}: entry point {found.value} cannot be loaded", found.load)


@cache
def _entries(kind: Kind) -> Mapping[str, EntryPoint]:
    """Return the entry points of a kind by name. Raises BadInput when two packages register the same name."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=_GROUPS[kind]):
        other = found.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise BadInput(f"{kind} {entry.name!r} is registered twice: {other.value} and {entry.value}")
    return found


def _from_file(kind: Kind, name: str) -> Any:
    path, _, attribute = name.rpartition(":")
    module = _module(kind, name, path)
    none = object()
    found = foreign.call(_unusable(kind, name), lambda: getattr(module, attribute, none))
    if found is none:
        raise BadInput(f"{kind} {name!r}: {path} has no {attribute}")
    return found


def _module(kind: Kind, name: str, path: str) -> Any:
    """Load a Python file once, so that all names in it refer to the same objects.

    Before that, another process does what will be done here, since a file may end the process that loads it
    (`os._exit`), or never return.
    """
    try:
        resolved, there = str(Path(path).resolve()), Path(path).is_file()
    except (OSError, ValueError) as error:  # too long, in a loop of links, or with a null character
        raise BadInput(f"{kind} {name[:80]!r}: not the name of a Python file: {str(error)[:60]}") from None
    key = f"onceproof_user_{Path(path).stem}_{abs(hash(resolved)):x}"
    spec = importlib.util.spec_from_file_location(key, path)
    if spec is None or spec.loader is None or not there:
        raise BadInput(f"{kind} {name!r}: no Python file at {path}")
    if problem := _trial(kind, name):
        raise BadInput(f"{kind} {name!r}: {path} cannot be loaded: {problem}")
    if key in sys.modules:
        return sys.modules[key]
    module = importlib.util.module_from_spec(spec)
    sys.modules[key] = module
    try:
        foreign.call(f"{kind} {name!r}: {path} cannot be loaded", partial(spec.loader.exec_module, module))
    except BaseException:
        sys.modules.pop(key, None)
        raise
    return module


def _trial(kind: Kind, name: str) -> str:
    """Return how the process ends, or that it does not, in which a part is examined; empty if that returns."""
    if TRIED in os.environ:
        return ""
    reads, told = os.pipe()
    command = [sys.executable, "-c", _TRIAL, str(told), kind, name, *sys.path]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(told,),
            env={**os.environ, TRIED: "1"},
            timeout=_TRIAL_DEADLINE_S,
            check=False,
        )
        os.write(told, b"\n")  # so that there is something to read
        returned = os.read(reads, len(_LOADED)) == _LOADED
    except subprocess.TimeoutExpired:
        return f"it did not return within {_TRIAL_DEADLINE_S} s"
    finally:
        os.close(reads)
        os.close(told)
    return "" if returned else f"it ended the process, with exit status {done.returncode}"
