"""Reads files that may come from anyone, and writes files so that a full disk leaves the old content whole."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from onceproof.harness.base.errors import BadInput


def text_of(path: Path, *, bytes_max: int) -> str:
    """Return the text of a file; raises as `lines_of` does."""
    return "".join(lines_of(path, bytes_max=bytes_max))


def lines_of(path: Path, *, bytes_max: int) -> Iterator[str]:
    """Yield the lines of a file, each with its line break; the last one may have none.

    Raises FileNotFoundError when there is none, and BadInput when it is no regular file, since a pipe or a device might
    never end, when it is larger than `bytes_max`, and when it cannot be read.
    """
    try:
        size = regular(path)
        if size > bytes_max:
            raise BadInput(f"{path}: {size} bytes; allowed: at most {bytes_max}")
        with path.open(encoding="utf-8", newline="\n") as file:
            yield from file
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # a ValueError: not UTF-8, or a null character in the name
        raise BadInput(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def regular(path: Path) -> int:
    """Return the size of a regular file. Raises BadInput for a folder, a pipe or a device, and OSError as `stat`."""
    told = path.stat()
    if not stat.S_ISREG(told.st_mode):
        raise BadInput(f"{path}: not a file")
    return told.st_size


def replaceable(*paths: Path) -> None:
    """Raise BadInput when one of these files cannot be written anew, because it is a folder."""
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            raise BadInput(f"{path}: a folder; allowed: a file, which is written anew")


def write(path: Path, text: str) -> None:
    """Write a file under another name first and rename it, so that it has its old content or the new one, whole.

    A link or a pipe with this name is replaced and not followed. Raises OSError when the file cannot be written.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.unlink(missing_ok=True)
        with new.open("x", encoding="utf-8") as file:
            file.write(text)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
