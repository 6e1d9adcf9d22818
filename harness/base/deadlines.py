"""Waits with a deadline. The error names the awaited condition and the last observed result."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from onceproof.harness.base.errors import DeadlineError

T = TypeVar("T")


def until(
    what: str,
    check: Callable[[], T],
    *,
    deadline_s: float,
    every_s: float = 0.2,
    abort: Callable[[], None] = lambda: None,
) -> T:
    """Call `check` every `every_s` seconds until it returns a true value, and return that value.

    An exception raised by `check` counts as "not yet" and is quoted when the deadline passes, because a cluster that
    is starting, or that a fault has just hit, refuses connections for a while.

    `abort` is called before each check, and an exception that it raises ends the wait.

    Raises DeadlineError after `deadline_s` seconds; its message names `what` and the last result or exception.
    """
    deadline = time.monotonic() + deadline_s
    while True:
        seen: object
        abort()
        try:
            result = check()
            if result:
                return result
            seen = result
        except Exception as error:  # quoted below if the deadline passes
            seen = f"{type(error).__name__}: {error}"
        if time.monotonic() >= deadline:
            raise DeadlineError(f"waited {deadline_s:g} s for {what}; last seen: {str(seen)[:300]}")
        time.sleep(every_s)


@contextmanager
def overdue(seconds: float, passed: Callable[[], object]) -> Iterator[None]:
    """Call `passed`, in another thread, when the block takes longer than `seconds`: for calls that may never return."""
    timer = threading.Timer(seconds, passed)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
