"""File systems of a limited size for the data of single brokers, so that a disk can be filled.

    disks.mount(folder, 300)     a tmpfs of 300 MB on a broker's data folder, before its container starts
    disks.fill(folder)           takes all space that is left, until `make_room`
    disks.unmount(folder)        with everything in it

They are mounted on this machine, so they outlive the broker's container and collecting reads them as any other folder.
That needs root and Linux; `why_impossible` says so before anything starts.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from onceproof.harness.base.errors import HarnessError

_FILLER = "filler"
_BLOCKS = (1 << 20, 1 << 12, 1)  # bytes that are written at a time, the largest first
_COMMAND_DEADLINE_S = 20


def why_impossible() -> str:
    """Return why no file system can be mounted on this machine; empty if one can."""
    if sys.platform != "linux":
        return "needs Linux, which mounts a tmpfs"
    if os.geteuid():
        return "needs root, which may mount a file system"
    return "" if shutil.which("mount") else "needs the program mount"


def mount(folder: Path, mb: int) -> None:
    """Mount an empty file system of `mb` MB on a folder. Raises HarnessError when that fails."""
    _run("mount", "-t", "tmpfs", "-o", f"size={mb}m,mode=0755", "onceproof", str(folder))


def unmount(folder: Path) -> None:
    """Unmount what is mounted on a folder. It may be called when nothing is."""
    if folder.is_mount():
        _run("umount", "--lazy", str(folder))


def fill(folder: Path) -> int:
    """Take all space that is left on a broker's file system; return how many bytes that were.

    Raises HarnessError when the folder has no file system of its own, since that would fill the machine's disk.
    """
    if not folder.is_mount():
        raise HarnessError(f"{folder}: it has no file system of its own to fill")
    with (folder / _FILLER).open("wb", buffering=0) as file:
        for size in _BLOCKS:
            block = bytes(size)
            try:
                while file.write(block) == size:
                    pass
            except OSError:  # no space left for a block of this size
                continue
        return file.tell()


def make_room(folder: Path) -> None:
    """Give the space back that `fill` has taken. This call is idempotent."""
    (folder / _FILLER).unlink(missing_ok=True)


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_DEADLINE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"{' '.join(command)}: {error}") from None
    if done.returncode:
        raise HarnessError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")


def remove(folder: Path) -> None:
    """Remove the folder of a cluster, with the file systems that are mounted in it."""
    for data in folder.glob("data/*"):
        unmount(data)
    shutil.rmtree(folder, ignore_errors=True)
