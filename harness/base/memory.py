"""The memory of processes, and Python's garbage collector."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause Python's garbage collector during the block.

    While objects that stay are made by the hundred thousand, it examines all of them again and again.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def resident_mb(root: psutil.Process) -> float:
    """Return the resident memory of a process and its children in MB, without pages of files.

    Mapped pages of a log belong to the page cache. A child with its parent's command line is about to start another
    program (Hadoop's file system calls chmod); until then its memory is its parent's, which must not count twice. The
    command line is read first, so that a program that starts in between is counted with its own memory, or next time.
    """
    commands: dict[int, list[str]] = {}
    total = 0
    for process in [root, *root.children(recursive=True)]:  # parents first
        with suppress(psutil.Error):
            commands[process.pid] = process.cmdline()
            if commands[process.pid] != commands.get(process.ppid()):
                used = process.memory_info()
                total += int(used.rss - used.shared)
    return total / 1e6
