"""The folder of a run, and room on the disk for its end: a file that is deleted before the results are written.

folder = new_folder(runs, "copy-7")
room = Room(folder)     folder/reserve takes up the room
room.release()          when the run ends, well or not
"""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from onceproof.harness.base.errors import HarnessError

_BYTES = 256 * 1024  # the results, the manifest and the last lines of the history need less


def new_folder(runs: Path, name: str) -> Path:
    """Make and return `<runs>/<name>-<time>`, with a number appended if another run has taken that name."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    for attempt in range(100):
        folder = runs / (f"{name}-{stamp}" + (f"-{attempt}" if attempt else ""))
        try:
            runs.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
            return folder
        except FileExistsError:
            continue
    raise HarnessError(f"{runs}: a folder for {name}-{stamp} cannot be made, since 100 of them exist")


class Room:
    """The reserved room of a run's folder. Raises HarnessError when the disk does not have it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "reserve"
        try:
            self._file.write_bytes(os.urandom(_BYTES))  # a file system that compresses would store zeros in no room
        except OSError as error:
            raise HarnessError(f"{folder}: no room for the files of a run: {error.strerror}") from None

    def release(self) -> None:
        """Make the room free. This call is idempotent."""
        self._file.unlink(missing_ok=True)


def keep(path: Path, text: str, say: Callable[[str], None]) -> None:
    """Write a file that no verdict depends on. An error is only shown."""
    try:
        path.write_text(text)
    except OSError as error:
        say(f"{path}: not written: {error.strerror}")
