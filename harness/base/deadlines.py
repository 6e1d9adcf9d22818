"""Waiting with a deadline. Every wait says what it waited for, and what it saw last."""

import time
from collections.abc import Callable
from typing import TypeVar

from onceproof.harness.base.errors import DeadlineError

T = TypeVar("T")


def until(what: str, check: Callable[[], T], *, deadline_s: float, every_s: float = 0.2) -> T:
    """Call `check` until its result is true, and return that result.

    An exception of `check` counts as "not yet" and is quoted when the deadline passes: a cluster that is coming up,
    or that a fault has just hit, refuses connections for a while.

    Raises DeadlineError after `deadline_s` seconds, naming `what` and the last result or error.
    """
    deadline = time.monotonic() + deadline_s
    while True:
        seen: object
        try:
            result = check()
            if result:
                return result
            seen = result
        except Exception as error:  # quoted below, if it stays
            seen = f"{type(error).__name__}: {error}"
        if time.monotonic() >= deadline:
            raise DeadlineError(f"waited {deadline_s:g} s for {what}; last seen: {str(seen)[:300]}")
        time.sleep(every_s)
