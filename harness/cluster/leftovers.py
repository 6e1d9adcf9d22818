"""Removes the files and folders that processes left which were killed.

    clusters/<name>.lock       of a cluster that is gone
    failed/<name>/             logs of a cluster that did not start
    jars/.<name>.lock          held while jars are downloaded or compiled
    clients/.<name>/, .lock    a client that was downloaded only in part
    jars/onceproof-<pid>-…/    work of a process (base/work.py), also in /tmp
    spark/<pid>/               temporary files of the Spark session of a process

What a running process uses stays: it holds the lock, or its process id is in the name.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from onceproof.harness.base import paths, work
from onceproof.harness.cluster import addresses

# Earlier versions named the folders of their work `tmp…`, without a process id. No such work took as long as this.
_UNNAMED_AT_MOST_S = 1800.0


@dataclass(frozen=True, kw_only=True)
class _Leftover:
    """Files and folders that belong together, and the locks that must be free for their removal."""

    paths: Sequence[Path]
    locks: Sequence[Path] = ()


def remove(say: Callable[[str], None], *, dry_run: bool) -> int:
    """Remove what killed processes left, or only say what would be removed; return the number of files and folders."""
    count = 0
    for each in _found():
        with ExitStack() as locks:
            if not all(locks.enter_context(unless_held(lock)) for lock in each.locks):
                continue
            for path in each.paths:
                say(f"would remove {path}" if dry_run else f"removing {path}")
                count += 1
                if not dry_run:
                    _delete(path)
    return count


@contextmanager
def unless_held(lock_file: Path) -> Iterator[bool]:
    """Hold a lock during the block, and yield whether that was possible. A lock without a file is held by nobody."""
    lock = FileLock(lock_file)
    if not lock_file.exists():
        yield True
        return
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _found() -> Iterator[_Leftover]:
    yield from _locks_of_clusters()
    yield from _failed()
    yield from _downloads(paths.jars_dir())
    yield from _downloads(paths.home() / "clients")
    for path in (*work.abandoned(paths.jars_dir()), *_unnamed(paths.jars_dir()), *work.abandoned(), *_sessions()):
        yield _Leftover(paths=[path])


def _locks_of_clusters() -> Iterator[_Leftover]:
    """Yield the locks without a cluster, unless a cluster is being started, whose folder may not be there yet."""
    for lock in _entries(paths.clusters_dir()):
        if lock.suffix == ".lock" and not lock.with_suffix("").exists():
            yield _Leftover(paths=[lock], locks=[addresses.lock_file(), lock])


def _failed() -> Iterator[_Leftover]:
    for folder in _entries(paths.home() / "failed"):
        yield _Leftover(paths=[folder], locks=[paths.clusters_dir() / f"{folder.name}.lock"])


def _downloads(parent: Path) -> Iterator[_Leftover]:
    """Yield the locks of downloads that nobody holds, each with the folder of the download if it was cut off."""
    hidden = [path for path in _entries(parent) if path.name.startswith(".") and path.name != ".ivy"]
    for name in sorted({path.name.removesuffix(".lock") for path in hidden}):
        both = parent / name, parent / f"{name}.lock"
        yield _Leftover(paths=[path for path in both if path.exists()], locks=[both[1]])


def _unnamed(parent: Path) -> Iterator[Path]:
    for path in _entries(parent):
        if path.name.startswith("tmp") and path.is_dir() and time.time() - path.stat().st_mtime > _UNNAMED_AT_MOST_S:
            yield path


def _sessions() -> Iterator[Path]:
    for path in _entries(paths.spark_dir()):
        if path.name.isdecimal() and not psutil.pid_exists(int(path.name)):
            yield path


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
