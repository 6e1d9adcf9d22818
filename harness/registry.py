"""Finding faults, workloads and verifiers: one module each, found by looking into its package.

A module of `faults`, `workloads` or `verifiers` takes part by having an attribute `FAULT`, `WORKLOADS` or `CHECKS`.
The harness never names one of them in an import: the arrows of the layers point the other way.

    fault("kill").params          the scenario's keys for this fault
    workload("copy").expected     what is right, as Spark SQL
    workload("my.py:PIPELINE")    a workload of one's own, from a file
"""

import importlib
import importlib.util
import pkgutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

from harness.errors import BadInput
from harness.protocols import Fault, Workload


def _modules(package: str) -> list[Any]:
    root = importlib.import_module(package)
    names = sorted(module.name for module in pkgutil.iter_modules(root.__path__) if not module.name.startswith("_"))
    return [importlib.import_module(f"{package}.{name}") for name in names]


@cache
def faults() -> dict[str, Fault]:
    """All faults by name."""
    return {module.FAULT.name: module.FAULT for module in _modules("faults") if hasattr(module, "FAULT")}


@cache
def workloads() -> dict[str, Workload]:
    """All workloads by name."""
    found = (workload for module in _modules("workloads") for workload in getattr(module, "WORKLOADS", ()))
    return {workload.name: workload for workload in found}


@cache
def checks() -> tuple[Any, ...]:
    """All checks of the verifiers. Importing them imports PySpark: not for a plugin's start."""
    return tuple(check for module in _modules("verifiers") for check in getattr(module, "CHECKS", ()))


def fault(name: str) -> Fault:
    if name not in faults():
        raise BadInput(f"unknown fault {name!r}; allowed: {', '.join(sorted(faults()))}")
    return faults()[name]


def workload(name: str) -> Workload:
    """A workload by name, or one's own as `path/to/file.py:NAME`."""
    if ":" in name:
        return _from_file(name)
    if name not in workloads():
        raise BadInput(f"unknown workload {name!r}; allowed: {', '.join(sorted(workloads()))}, or FILE.py:NAME")
    return workloads()[name]


def _from_file(name: str) -> Workload:
    path, _, attribute = name.rpartition(":")
    spec = importlib.util.spec_from_file_location(f"onceproof_user_{Path(path).stem}", path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise BadInput(f"workload {name!r}: no Python file at {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the file does
        raise BadInput(f"workload {name!r}: {path} cannot be loaded: {type(error).__name__}: {error}") from error
    if not hasattr(module, attribute):
        raise BadInput(f"workload {name!r}: {path} has no {attribute}")
    found: Workload = getattr(module, attribute)
    return found
