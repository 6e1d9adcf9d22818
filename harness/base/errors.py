"""Errors outside the system under test.

`BadInput` is for the user to correct (exit status 2). `HarnessError` is a failure of the harness (exit status 3).
Neither says anything about Kafka.
"""

import difflib
import traceback
from collections.abc import Iterable

_LINE_MAX = 300


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean …?" with the known name that is most like another one, or an empty string.

    The dashes of options are not compared, since all options have them.
    """
    names = {each.lstrip("-"): each for each in known}
    alike = difflib.get_close_matches(name.lstrip("-"), list(names), n=1)
    return f"; did you mean {names[alike[0]]}?" if alike else ""


def in_a_line(error: BaseException) -> str:
    """Return the class of an error and the beginning of what it says, in one line.

    str() of an exception from a JVM that has died raises another exception; format_exception_only does not.
    """
    told = "".join(traceback.format_exception_only(error)).splitlines()
    return " ".join(told[:2])[:_LINE_MAX]


class BadInput(Exception):
    """A scenario, option or run folder cannot be used.

    The message is one line with the place, the problem and the allowed values. Characters that cannot be printed, such
    as line breaks in a name, are escaped.
    """

    def __init__(self, says: str) -> None:
        super().__init__("".join(each if each.isprintable() else repr(each)[1:-1] for each in says))


class Signalled(KeyboardInterrupt):
    """A signal ends the command. A file of the user may raise a KeyboardInterrupt, too, which ends nothing."""


class HarnessError(Exception):
    """The harness could not do its work; the run's verdict is `unknown: harness-error`."""


class WorkloadError(HarnessError):
    """The code of a workload fails again and again; the run's verdict is `unknown: workload-error`."""


class DeadlineError(HarnessError):
    """A wait reached its deadline; the message names the awaited condition."""
