"""The console for results: as wide as the terminal, and wide enough to cut nothing off where there is none."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

_WIDE = 250  # characters of a line in a file or a pipe


@contextmanager
def log_shown(*, quiet: bool) -> Iterator[None]:
    """Print what takes long before anything starts, such as a download, as a line on stderr; nothing with `quiet`."""
    log, handler = logging.getLogger("onceproof"), logging.StreamHandler(sys.stderr)
    log.setLevel(logging.ERROR if quiet else logging.INFO)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)


def console(*, soft_wrap: bool = False) -> Console:
    """Return a console on stdout that does not colour numbers and paths by itself.

    `soft_wrap` leaves it to the terminal to break long lines, so that they can be copied whole.
    """
    return Console(highlight=False, soft_wrap=soft_wrap, width=None if sys.stdout.isatty() else _WIDE)
