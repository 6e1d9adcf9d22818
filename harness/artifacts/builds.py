"""Builds an application with its own toolchain before a run, into a folder of the cache.

built(("go", "build", "-o", "{build}/copier", "."), place)    → ~/.cache/onceproof/builds/copier-<hash>
"""

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from onceproof.harness.base.errors import BadInput
from onceproof.harness.base.paths import builds_dir, made

_DEADLINE_S = 600
_SAID_MAX = 400


def folder(command: Sequence[str], place: Path) -> Path:
    """Return the folder `{build}` of a command with the working folder `place`."""
    digest = hashlib.sha256("\0".join((str(place), *command)).encode()).hexdigest()[:8]
    return builds_dir() / f"{place.name}-{digest}"


@cache
def built(command: tuple[str, ...], place: Path) -> Path:
    """Run a command that builds an application in its working folder, and return the folder that it has filled.

    It is run once in each process of onceproof, however many runs use it. Raises BadInput when its program is missing,
    or with the last lines of its output when it fails.
    """
    if shutil.which(command[0]) is None:
        raise BadInput(f"app.build: {command[0]!r:.80}: no such program; allowed: one that is installed")
    target = made(folder(command, place))
    try:
        done = subprocess.run(
            [each.replace("{build}", str(target)) for each in command],
            cwd=place,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BadInput(f"app.build: {command[0]} did not end within {_DEADLINE_S} s") from None
    if done.returncode != 0:
        said = " ".join((done.stdout + done.stderr).split())[-_SAID_MAX:]
        raise BadInput(f"app.build: {command[0]} ended with exit status {done.returncode}: {said}")
    return target
