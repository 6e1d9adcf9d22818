"""Remove what onceproof stored and installed on a machine: images, the cache, packages, the engine that setup started.

`onceproof setup` records what it installs in `installed`, below `ONCEPROOF_HOME`. Only that is removed, besides
onceproof's own images and its cache. A package that something else needs by now is kept, and so is an engine with
containers of others. Each step is said in one line, before it is done.
"""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from onceproof.harness.base import paths
from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import HarnessError

Say = Callable[[str], None]
_DEADLINE_S = 600
_ENGINE_DEADLINE_S = 60
_OWN_IMAGES = "onceproof/*"
_OWN_FILES = ("clients", "clusters", "failed", "formatted", "jars", "spark", "setup-images", "verdicts", "installed")


@dataclass(frozen=True, kw_only=True)
class Step:
    """Something to remove: what it is, and how. Without `remove`, it stays, and `what` says why."""

    what: str
    remove: Callable[[], object] | None


@dataclass(frozen=True, kw_only=True)
class Installed:
    """What setup recorded: packages of apt, files, images that were pulled, and the process ids of engines."""

    packages: list[str]
    files: list[Path]
    images: list[str]
    engines: list[int]


def recorded() -> Installed:
    """Read what setup recorded, if it installed anything. Raises HarnessError for a line that it did not write."""
    path = paths.home() / "installed"
    found: dict[str, list[str]] = {"package": [], "file": [], "image": [], "engine": []}
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else (), 1):
        kind, _, what = line.partition(" ")
        if kind not in found or not what or (kind == "engine" and not what.isdecimal()):
            raise HarnessError(f"{path}: line {number}: allowed: package NAME, file PATH, image NAME, engine PID")
        if what not in found[kind]:
            found[kind].append(what)
    return Installed(
        packages=found["package"],
        files=[Path(file) for file in found["file"]],
        images=found["image"],
        engines=[int(pid) for pid in found["engine"]],
    )


def remove(say: Say, *, dry_run: bool) -> None:
    """Remove everything, or only say what would be removed. The caller has removed the clusters."""
    for step in steps(recorded()):
        if step.remove is None:
            say(f"kept: {step.what}")
        elif dry_run:
            say(f"would remove {step.what}")
        else:
            say(f"removing {step.what}")
            step.remove()


def steps(installed: Installed, own_images: str = _OWN_IMAGES) -> Iterator[Step]:
    """Yield the steps in their order; each one is determined when the one before it is done."""
    others = yield from _images(installed.images, own_images)
    engines = [pid for pid in installed.engines if _is_engine(pid)]
    if others and (engines or installed.packages):
        yield Step(what=f"packages and engine, because the engine has containers of others: {others[0]}", remove=None)
    else:
        for pid in engines:
            yield Step(what=f"the Docker engine that setup started (process {pid})", remove=partial(_end, pid))
        yield from _packages(installed.packages)
        for file in installed.files:
            yield Step(what=str(file), remove=partial(file.unlink, missing_ok=True))
    yield from _home()


def _home() -> Iterator[Step]:
    """Yield one step for the files of onceproof below its home; files of others there are kept."""
    home = paths.home()
    entries = sorted(home.iterdir()) if home.is_dir() else []
    own = [entry for entry in entries if entry.name in _OWN_FILES]
    if own:
        names = ", ".join(entry.name for entry in own)
        yield Step(what=f"{names} in {home}", remove=partial(_remove_files, home, own))
    if foreign := [entry.name for entry in entries if entry.name not in _OWN_FILES]:
        yield Step(what=f"{home}, because {foreign[0]} is not of onceproof", remove=None)


def _remove_files(home: Path, own: list[Path]) -> None:
    for entry in own:
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    with suppress(OSError):  # it is not empty
        home.rmdir()


def _images(pulled: list[str], own: str) -> Generator[Step, None, list[str]]:
    """Yield a step for each image; return the names of containers that are not onceproof's."""
    try:
        tags = _output("docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", own).split()
    except HarnessError:
        yield Step(what="images, because the Docker engine does not answer", remove=None)
        return []
    for name in [*sorted(tags), *pulled]:
        yield Step(what=f"image {name}", remove=partial(_output, "docker", "image", "rm", name))
    return _output("docker", "ps", "--all", "--format", "{{.Names}}").split()


def _packages(wanted: list[str]) -> Iterator[Step]:
    """Yield one step for the recorded packages that are still installed, unless others depend on them."""
    packages = [each for each in wanted if _package_there(each)]
    if not packages:
        return
    simulated = _output("apt-get", "--simulate", "remove", *packages)
    extra = sorted(set(re.findall(r"^Remv (\S+)", simulated, re.MULTILINE)) - set(packages))
    if extra:
        yield Step(what=f"packages, because {extra[0]}, which setup did not install, needs one of them", remove=None)
        return
    names = ", ".join(packages)
    yield Step(what=f"packages {names}", remove=partial(_output, "apt-get", "--yes", "remove", *packages))


def _package_there(name: str) -> bool:
    command = ("dpkg-query", "--show", "--showformat", "${db:Status-Abbrev}", name)
    return _output(*command, may_fail=True).startswith("ii")


def _output(*command: str, may_fail: bool = False) -> str:
    """Return what a command prints. Raises HarnessError when it fails, unless it may."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_DEADLINE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"{' '.join(command[:3])}: {error}") from None
    if done.returncode != 0 and not may_fail:
        raise HarnessError(f"{' '.join(command[:3])}: {done.stderr.strip()[-300:]}")
    return done.stdout


def _is_engine(pid: int) -> bool:
    """Return whether the process is still a Docker engine, and not another one with the same id."""
    try:
        return bool(psutil.Process(pid).name() == "dockerd")
    except psutil.NoSuchProcess:
        return False


def _end(pid: int) -> None:
    """End an engine as its service manager does. Raises DeadlineError when it does not end within a minute."""
    os.kill(pid, signal.SIGTERM)
    until("the Docker engine to end", lambda: not _is_engine(pid), deadline_s=_ENGINE_DEADLINE_S)
