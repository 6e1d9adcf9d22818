"""Ways to break a run folder, and what holds for a command that is given one."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest

from onceproof.cli import commands, main
from onceproof.harness.record import manifest

Change = Callable[[Path], object]
Key = str | int


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A way to break a run folder. `says` is what the refusal must contain; `sealed` folders are sealed again."""

    name: str
    change: Change
    says: str
    sealed: bool = True


def broken(judged: Path, tmp_path: Path, case: Broken) -> Path:
    """A copy of a judged folder, broken as the case says."""
    folder = tmp_path / "run"
    shutil.copytree(judged, folder)
    case.change(folder)
    if case.sealed:
        manifest.seal(folder)
        manifest.seal_results(folder)
    return folder


def ended(capsys: pytest.CaptureFixture[str], command: str, folder: Path) -> tuple[int, str]:
    """The exit status of a command and all that it printed, after what holds for every command."""
    capsys.readouterr()
    status = main.main([command, str(folder)])
    told = capsys.readouterr()
    assert "Traceback" not in told.out + told.err
    if status == commands.BAD_INPUT:
        assert told.out == ""
        assert told.err.startswith("onceproof: ") and told.err.count("\n") == 1
    elif status == commands.FAILED:
        assert "unknown: harness-error" in told.out
    return status, told.out + told.err


def edit(name: str, change: Callable[[Any], object]) -> Change:
    """Change the JSON document of a folder in place."""

    def apply(folder: Path) -> None:
        document = json.loads((folder / name).read_text())
        change(document)
        (folder / name).write_text(json.dumps(document))

    return apply


def put(value: object, *keys: Key) -> Callable[[Any], object]:
    """Give a place in a document another value."""
    return lambda document: reduce(getitem, keys[:-1], document).__setitem__(keys[-1], value)


def drop(*keys: Key) -> Callable[[Any], object]:
    """Remove a place from a document."""
    return lambda document: reduce(getitem, keys[:-1], document).__delitem__(keys[-1])


def no_file(name: str, kind: str) -> Change:
    """Put a folder, a pipe, a device or a link to itself in the place of a file."""

    def apply(folder: Path) -> None:
        path = folder / name
        path.unlink(missing_ok=True)
        if kind == "folder":
            path.mkdir()
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to("/dev/null" if kind == "device" else name)

    return apply


def relined(change: Callable[[list[str]], list[str]]) -> Change:
    """Change the lines of the history."""

    def apply(folder: Path) -> None:
        path = folder / "history.jsonl"
        path.write_text("\n".join(change(path.read_text().split("\n"))))

    return apply
