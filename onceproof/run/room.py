"""Room on the disk for the end of a run: a file that is deleted when the results could not be written otherwise.

room = Room(folder)     folder/reserve takes up the room
room.release()          when the run ends, well or not
"""

import os
from collections.abc import Callable
from pathlib import Path

from onceproof.harness.base.errors import HarnessError

_BYTES = 256 * 1024  # the results, the manifest and the last lines of the history need less


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
