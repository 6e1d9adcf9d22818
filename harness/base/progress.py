"""Progress output of a run: the phase, the rate, the lag, the LSO against the high watermark, and faults.

On a terminal, a status line is kept up to date below the printed events. Elsewhere, each phase and event is one plain
line. With `quiet`, nothing is printed. Colours are used on a terminal only.
"""

import time
from contextlib import AbstractContextManager
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from onceproof.harness.base.text import shown

_LINE_EVERY_S = 30.0


class Progress(AbstractContextManager["Progress"]):
    """Prints the phases of one run and measures them.

    `seconds` maps each completed phase to its duration in seconds; phases of the same name are summed.
    """

    def __init__(self, *, quiet: bool = False, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, quiet=quiet, highlight=False)
        self._status: Status | None = None
        self._started = self._phase_started = self._told = time.monotonic()
        self._phase = ""
        self.seconds: dict[str, float] = {}

    def phase(self, name: str) -> None:
        """End the current phase and begin the phase `name`."""
        self._close_phase()
        self._phase, self._phase_started = name, time.monotonic()
        self._told = self._phase_started
        if self._console.is_terminal:
            self._shown_status().update(f"[bold]{name}[/]")
        else:
            self.say(name)

    def say(self, text: str) -> None:
        """Print one line, preceded by the seconds since the start, without the control characters of the text."""
        self._console.print(f"{time.monotonic() - self._started:6.1f} s  {shown(text)}", markup=False)

    def live(self, text: str) -> None:
        """Show current figures in the status line; without a terminal, do nothing."""
        if self._status is not None:
            self._status.update(f"[bold]{self._phase}[/]  {escape(shown(text))}")

    def far(self, text: str) -> None:
        """Say how far a phase of many minutes is: in the status line, or else in a line each half minute."""
        if self._console.is_terminal:
            self._shown_status()
            self.live(text)
        elif time.monotonic() - self._told >= _LINE_EVERY_S:
            self._told = time.monotonic()
            self.say(text)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_phase()
        if self._status is not None:
            self._status.stop()

    def _shown_status(self) -> Status:
        if self._status is None:
            self._status = self._console.status("")
            self._status.start()
        return self._status

    def _close_phase(self) -> None:
        if self._phase:
            spent = time.monotonic() - self._phase_started
            self.seconds[self._phase] = round(self.seconds.get(self._phase, 0.0) + spent, 1)
            self._phase = ""
