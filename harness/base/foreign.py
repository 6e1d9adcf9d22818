"""Call code that a file of the user or another package brings, so that it cannot end the command.

    found = foreign.call("workload 'mine.py:MINE': it cannot be used", lambda: getattr(module, "MINE"))

Such code may run whenever one looks at an object: when an attribute is read, its class is asked for, or it is printed.
It may raise anything, also SystemExit, with which a command would end silently and with the status 0.
"""

import signal
from collections.abc import Callable
from typing import TypeVar

from onceproof.harness.base.errors import BadInput, Signalled

_SHOWN_MAX = 80

Result = TypeVar("Result")


def call(what: str, do: Callable[[], Result]) -> Result:
    """Return what `do` returns. Raises BadInput, which begins with `what`, whatever `do` raises, except for Ctrl-C."""
    try:
        return do()
    except BadInput:
        raise
    except BaseException as error:
        if by_a_signal(error):
            raise
        raise BadInput(f"{what}: {said(error)}") from error


def by_a_signal(error: BaseException) -> bool:
    """Whether a signal may have raised this: that of the command line raises Signalled, Python's own no such class."""
    plain = isinstance(error, KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return plain or isinstance(error, Signalled)


def said(error: BaseException) -> str:
    """Return the class of an error and what it says, if it can say it."""
    try:
        return ": ".join(filter(None, (type(error).__name__, str(error))))
    except BaseException as other:
        if by_a_signal(other):
            raise
        return object.__repr__(error)


def shown(value: object) -> str:
    """Return the beginning of the representation of an object; its class and address if it has none."""
    try:
        return repr(value)[:_SHOWN_MAX]
    except BaseException as error:
        if by_a_signal(error):
            raise
        return object.__repr__(value)[:_SHOWN_MAX]
