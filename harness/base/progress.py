"""What a person sees while a run goes on: phase, rate, lag, LSO against HW, faults as they happen.

On a terminal a line that is kept up to date, with the events above it; elsewhere plain lines, one a phase and event;
with `quiet` nothing but what the caller prints at the end. Colours only on a terminal.
"""

import time
from contextlib import AbstractContextManager
from types import TracebackType

from rich.console import Console
from rich.status import Status


class Progress(AbstractContextManager["Progress"]):
    """The phases of one run, and how long each took, in seconds."""

    def __init__(self, *, quiet: bool = False, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, quiet=quiet, highlight=False)
        self._status: Status | None = None
        self._started = self._phase_started = time.monotonic()
        self._phase = ""
        self.seconds: dict[str, float] = {}

    def phase(self, name: str) -> None:
        """The next phase begins; the one before it is over."""
        self._close_phase()
        self._phase, self._phase_started = name, time.monotonic()
        if self._console.is_terminal:
            if self._status is None:
                self._status = self._console.status(name)
                self._status.start()
            self._status.update(f"[bold]{name}[/]")
        else:
            self.say(name)

    def say(self, text: str) -> None:
        self._console.print(f"{time.monotonic() - self._started:6.1f} s  {text}", markup=False)

    def live(self, text: str) -> None:
        """Numbers of the moment: shown on a terminal only."""
        if self._status is not None:
            self._status.update(f"[bold]{self._phase}[/]  {text}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_phase()
        if self._status is not None:
            self._status.stop()

    def _close_phase(self) -> None:
        if self._phase:
            spent = time.monotonic() - self._phase_started
            self.seconds[self._phase] = round(self.seconds.get(self._phase, 0.0) + spent, 1)
            self._phase = ""
