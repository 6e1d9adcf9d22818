"""What a command does before it imports anything that takes time: it listens to signals, and opens stdout and stderr.

This module imports only what Python has loaded when it starts.
"""

import io
import os
import signal
import sys
from types import FrameType

HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_INTERRUPTED = b"onceproof: interrupted\n"


def heard() -> list[signal.Signals]:
    """Return the signals that end a command, except those that the process was told to ignore.

    A shell makes background jobs ignore SIGINT, and `nohup` makes a command ignore SIGHUP.
    """
    return [each for each in HEARD if signal.getsignal(each) is not signal.SIG_IGN]


def listen() -> None:
    """End the process at once on a signal, until `signals.listen` replaces this.

    Nothing has been started yet, so there is nothing to clean up. A KeyboardInterrupt in the middle of an import would
    print a traceback, and modules in C may turn it into another error.
    """
    for each in heard():
        signal.signal(each, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    """Print one line, and end the process with 128 plus the number of the signal."""
    try:
        os.write(2, _INTERRUPTED)
    finally:  # stderr may be closed
        os._exit(128 + number)


def open_streams() -> None:
    """Make stdout and stderr accept everything that is printed.

    A stream that the shell has closed (`onceproof list >&-`) is None in Python; what is printed there is thrown away. A
    character that the encoding of stdout does not have is printed as a question mark. (stderr escapes it anyway.)
    """
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_WRONLY)  # the lowest number that is free, which may be this one
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
            os.set_inheritable(number, True)  # the processes that a command starts print there as well
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
