"""Collects what goes wrong with the processes of a run, and says when the run must end.

A worker that a fault kills, or whose client fails, is restarted and no failure. A worker that ends by itself, several
times in a row without a committed transaction in between, will not get any further.
"""

import threading

from onceproof.harness.base.errors import HarnessError, WorkloadError
from onceproof.harness.context.process import EXIT_WORKLOAD

_IN_A_ROW_MAX = 3


class Failures:
    """The failures of one run. It is safe to use from several threads.

    `crashes` has one line for each process that ended unexpectedly or reported an invalid event. `fatal` is the error
    with which the run must end; None if it may go on.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_a_row: dict[int, int] = {}
        self.crashes: list[str] = []
        self.fatal: HarnessError | None = None

    def ended(self, worker: int, code: int, said: str) -> None:
        """Record that a worker ended, which no fault and no error of its client explains.

        `code` is its exit status, and `said` the last line that it printed.
        """
        with self._lock:
            self._in_a_row[worker] = count = self._in_a_row.get(worker, 0) + 1
        of_workload = code == EXIT_WORKLOAD
        if not of_workload:
            self.crashes.append(f"worker-{worker} ended with exit status {code}: {said}")
        if count >= _IN_A_ROW_MAX:
            kind = WorkloadError if of_workload else HarnessError
            what = said if of_workload else f"exit status {code}: {said}"
            self.end(kind(f"worker-{worker} ended {count} times in a row without a committed transaction: {what}"))

    def committed(self, worker: int) -> None:
        """Record that a worker committed a transaction."""
        with self._lock:
            self._in_a_row.pop(worker, None)

    def end(self, error: HarnessError) -> None:
        """Let the run end with an error, unless it ends with another one already."""
        with self._lock:
            self.fatal = self.fatal or error

    def check(self) -> None:
        """Raise the error with which the run must end, if there is one."""
        if self.fatal is not None:
            raise self.fatal

    def check_started(self) -> None:
        """Raise as `check` does, and HarnessError if a process has ended, as none may before the load."""
        self.check()
        if self.crashes:
            raise HarnessError(self.crashes[0])
