"""The console for results: as wide as the terminal, and wide enough to cut nothing off where there is none."""

import sys

from rich.console import Console

_WIDE = 250  # characters of a line in a file or a pipe


def console(*, soft_wrap: bool = False) -> Console:
    """Return a console on stdout that does not colour numbers and paths by itself.

    `soft_wrap` leaves it to the terminal to break long lines, so that they can be copied whole.
    """
    return Console(highlight=False, soft_wrap=soft_wrap, width=None if sys.stdout.isatty() else _WIDE)
