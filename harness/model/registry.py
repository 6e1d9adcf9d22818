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
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from onceproof.harness.base.errors import BadInput, suggestion
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.model.system import System
from onceproof.harness.model.workload import Workload

Kind = Literal["fault", "check", "workload", "system"]
_GROUPS: Mapping[Kind, str] = {
    "fault": "onceproof.faults",
    "check": "onceproof.checks",
    "workload": "onceproof.workloads",
    "system": "onceproof.systems",
}


# In the environment of the processes of a run, whose files have been tried.
TRIED = "ONCEPROOF_FILES_TRIED"
_TRIAL_DEADLINE_S = 60
_TRIAL = """
import runpy, sys
sys.path[:0] = sys.argv[2:]
try:
    runpy.run_path(sys.argv[1], run_name="onceproof_trial")
except BaseException:
    pass  # the process that asks finds out itself
print()
print("loaded")
"""


class FaultKind(Protocol):
    """The attributes of a fault that a plan needs. `harness/context/fault.py` has those that a run needs."""

    name: str
    about: str
    params: type[FaultSpec]


@cache
def names(kind: Kind) -> tuple[str, ...]:
    """Return the registered names of a kind, sorted. Raises BadInput when a name is registered twice."""
    return tuple(sorted(_entries(kind)))


def fault(name: str) -> FaultKind:
    """Return a fault by its registered name or as `FILE.py:NAME`. Raises BadInput when there is none."""
    found = _get("fault", name)
    params = getattr(found, "params", None)
    if not (isinstance(params, type) and issubclass(params, FaultSpec) and callable(getattr(found, "inject", None))):
        raise BadInput(f"fault {name!r}: expected name, about, params (a FaultSpec) and inject; got {found!r:.80}")
    return cast(FaultKind, found)


def workload(name: str) -> Workload:
    """Return a workload by its registered name or as `FILE.py:NAME`. Raises BadInput when there is none."""
    found = _get("workload", name)
    if not isinstance(found, Workload):
        raise BadInput(f"workload {name!r}: expected a Workload; got {found!r:.80}")
    if problem := found.problem():
        raise BadInput(f"workload {name!r}: {problem}")
    return found


def system(name: str) -> System:
    """Return a system by its registered name or as `FILE.py:NAME`. Raises BadInput when there is none."""
    found = _get("system", name)
    if not isinstance(found, System):
        raise BadInput(f"system {name!r}: expected a System; got {found!r:.80}")
    return found


def get(kind: Kind, name: str) -> Any:
    """Return a part of any kind without checking its type. Raises BadInput when there is none."""
    return _get(kind, name)


@cache
def _get(kind: Kind, name: str) -> Any:
    if ":" in name:
        return _from_file(kind, name)
    found = _entries(kind).get(name)
    if found is None:
        alike = suggestion(name, names(kind))
        raise BadInput(f"unknown {kind} {name!r}{alike}; allowed: {', '.join(names(kind))}, or FILE.py:NAME")
    try:
        return found.load()
    except (Exception, SystemExit) as error:  # a module may raise anything
        says = f"{type(error).__name__}: {error}"
        raise BadInput(f"{kind} {name!r}: entry point {found.value} cannot be loaded: {says}") from error


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
    if not hasattr(module, attribute):
        raise BadInput(f"{kind} {name!r}: {path} has no {attribute}")
    return getattr(module, attribute)


def _module(kind: Kind, name: str, path: str) -> Any:
    """Load a Python file once, so that all names in it refer to the same objects.

    Before that, another process loads it, since a file may end the process that loads it (`os._exit`), or never return.
    """
    try:
        resolved, there = str(Path(path).resolve()), Path(path).is_file()
    except (OSError, ValueError) as error:  # too long, in a loop of links, or with a null character
        raise BadInput(f"{kind} {name[:80]!r}: not the name of a Python file: {str(error)[:60]}") from None
    key = f"onceproof_user_{Path(path).stem}_{abs(hash(resolved)):x}"
    if key in sys.modules:
        return sys.modules[key]
    spec = importlib.util.spec_from_file_location(key, path)
    if spec is None or spec.loader is None or not there:
        raise BadInput(f"{kind} {name!r}: no Python file at {path}")
    if problem := _trial(resolved):
        raise BadInput(f"{kind} {name!r}: {path} cannot be loaded: {problem}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[key] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a file may raise anything
        del sys.modules[key]
        raise BadInput(f"{kind} {name!r}: {path} cannot be loaded: {type(error).__name__}: {error}") from error
    return module


def _trial(path: str) -> str:
    """Return how the process ends, or that it does not, in which a Python file is loaded; empty if the file returns."""
    if TRIED in os.environ:
        return ""
    command = [sys.executable, "-c", _TRIAL, path, *sys.path]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TRIAL_DEADLINE_S)
    except subprocess.TimeoutExpired:
        return f"it did not return within {_TRIAL_DEADLINE_S} s"
    returned = done.stdout.endswith(b"\nloaded\n")
    return "" if returned else f"it ended the process, with exit status {done.returncode}"
