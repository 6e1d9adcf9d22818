"""Folders for the work of a moment. Their names have the process id, so that `clean` sees whose process has ended."""

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

_NAME = re.compile(r"onceproof-([0-9]{1,9})-[a-z0-9_]+")


def folder(parent: Path | None = None) -> "tempfile.TemporaryDirectory[str]":
    """Return a new folder in `parent` (default: the system's folder for temporary files), which a `with` removes."""
    return tempfile.TemporaryDirectory(prefix=f"onceproof-{os.getpid()}-", dir=parent)


def abandoned(parent: Path | None = None) -> Iterator[Path]:
    """Yield the folders in `parent` that `folder` made for a process of this user that has ended."""
    parent = parent or Path(tempfile.gettempdir())
    for path in sorted(parent.iterdir()) if parent.is_dir() else ():
        named = _NAME.fullmatch(path.name)
        if named and not psutil.pid_exists(int(named[1])) and _is_ours(path):
            yield path


def _is_ours(path: Path) -> bool:
    """Whether it is a folder of this user: everybody may write into the system's folder for temporary files."""
    return path.is_dir() and not path.is_symlink() and path.stat().st_uid == os.getuid()
