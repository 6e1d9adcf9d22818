"""Ctrl-C, SIGTERM and SIGHUP: the first one ends a command in order, a second one ends it at once.

Work that is interrupted ends its processes and removes its cluster. That takes some seconds, in which a second signal
ends the command with all its processes; its containers are then left for `onceproof clean`.
"""

import os
import signal
import sys
from contextlib import suppress
from types import FrameType

import psutil

from onceproof.cli.early import heard
from onceproof.harness.base.errors import Signalled

_FIRST = "onceproof: interrupted; ending everything that it started (once more: end at once)"
_SECOND = "onceproof: ended at once; `onceproof clean` removes the containers that it may have left"


_received = signal.SIGINT


def status() -> int:
    """Return the exit status of a command that a signal interrupted: 128 plus the number of the signal."""
    return 128 + _received


def listen() -> None:
    """Handle the signals, except those that the process was told to ignore."""
    for each in heard():
        signal.signal(each, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    """End the work by `Signalled`, a KeyboardInterrupt. The next signal ends the process."""
    global _received
    _received = signal.Signals(number)
    for each in heard():
        signal.signal(each, _end_at_once)
    _say(_FIRST)
    raise Signalled


def _end_at_once(number: int, _frame: FrameType | None) -> None:
    """End this process and all processes that it started, without any cleanup."""
    _say(_SECOND)
    with suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                child.kill()
    os._exit(128 + number)


def _say(text: str) -> None:
    """Print a line on stderr. If the terminal is gone, all later output is thrown away instead of raising errors."""
    try:
        os.write(sys.stderr.fileno(), f"{text}\n".encode())  # print() must not be called again by a handler
    except OSError:
        nothing = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nothing, stream)
