"""Check that everything a run needs is on this machine, and say how to get what is missing."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from onceproof.harness.artifacts import images, jars, java
from onceproof.harness.artifacts.clients import DEFAULT_KAFKA
from onceproof.harness.base import host, paths
from onceproof.harness.base.errors import HarnessError

_SETUP = "`onceproof setup` installs it (as root on Debian or Ubuntu)"
_ASK_DEADLINE_S = 20
_GB = 10**9
# The images and jars take about 1 GB; the logs of brokers, Spark's temporary files and tables of a large run the rest.
_DISK_BYTES = 5 * _GB
# Six nodes take 1.6 GB, Spark up to 2.5 GB, the processes of a run the rest.
_MEMORY_BYTES = 5 * _GB


@dataclass(frozen=True, kw_only=True)
class Need:
    """Something that onceproof needs on a machine: what it is, whether it is there, and how to get it."""

    what: str
    ok: bool
    how: str


def checks() -> Iterator[Need]:
    """Each need, in the order in which they depend on each other."""
    info = _info()
    engine = str(info.get("ServerVersion") or "")
    yield Need(what=f"Docker engine {engine}", ok=bool(engine), how=f"start it, or: {_SETUP}")
    problems = host.unsupported(info, _components())
    yield Need(what="platform", ok=not problems, how="; ".join(problems))
    compose = _answers("docker", "compose", "version", "--short")
    yield Need(what=f"Compose {compose or ''}", ok=bool(re.match(r"v?([2-9]|\d\d)", compose)), how=f"v2: {_SETUP}")
    problem = java.problem()  # the same as what `run` refuses
    how = f"{problem}; allowed: Java {java.OLDEST} to {java.NEWEST}: {_SETUP}"
    yield Need(what=f"Java {java.version_on_path()}", ok=not problem, how=how)
    yield _memory(info)
    yield from _disks(info)
    for tag in (images.BASE_IMAGE, images.TOXIPROXY_IMAGE):
        yield Need(what=f"image {tag}", ok=bool(engine) and _present(tag), how=_SETUP)
    for name in (f"kafka-{DEFAULT_KAFKA}", jars.COMPILER):
        yield Need(what=f"jars {name}", ok=jars.fetched(name), how=_SETUP)


def _memory(info: Mapping[str, Any]) -> Need:
    """Whether enough memory is free here, and the engine, which may run in a virtual machine, has enough in all."""
    free = psutil.virtual_memory().available
    engine = int(info.get("MemTotal") or _MEMORY_BYTES)
    of_engine = f", {engine / _GB:.1f} GB in the engine" if "MemTotal" in info else ""
    what = f"memory: {free / _GB:.1f} GB free{of_engine}"
    return Need(what=what, ok=min(free, engine) >= _MEMORY_BYTES, how=f"a run needs {_MEMORY_BYTES // _GB} GB")


def _disks(info: Mapping[str, Any]) -> Iterator[Need]:
    """Whether the disks of the cache, of the current folder and, if it is of this machine, of the engine have room."""
    places = {"the cache": paths.home().absolute(), "the current folder": Path.cwd()}
    root = Path(str(info.get("DockerRootDir") or "/nowhere"))
    if root.is_dir():
        places["the Docker engine"] = root
    for name, place in places.items():
        existing = next(each for each in (place, *place.parents) if each.exists())
        free = shutil.disk_usage(existing).free
        what = f"disk of {name}: {free / _GB:.1f} GB free"
        yield Need(what=what, ok=free >= _DISK_BYTES, how=f"a run needs {_DISK_BYTES // _GB} GB below {existing}")


def _info() -> dict[str, Any]:
    """What the engine tells about itself; nothing if it does not answer."""
    try:
        info = json.loads(_answers("docker", "info", "--format", "{{json .}}"))
    except ValueError:
        return {}
    return info if isinstance(info, dict) else {}


def _components() -> list[str]:
    """The names of the engine's parts, and what the command `docker` says of itself."""
    told = _answers("docker", "version", "--format", "{{range .Server.Components}}{{println .Name}}{{end}}")
    return [*told.splitlines(), _answers("docker", "--version")]


def _present(tag: str) -> bool:
    try:
        return images.present(tag)
    except HarnessError:
        return False


def _answers(*command: str) -> str:
    """What a command prints (on either stream), or an empty string if it is not installed or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_DEADLINE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout or done.stderr).strip() if done.returncode == 0 else ""
