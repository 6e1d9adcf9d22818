"""Limit the time of queries: one that does not end is cancelled, so that a verdict is always reached.

A workload's model and a check of one's own are SQL that anybody may write, such as a cross join of a million inputs
with themselves. Each check has a limit, which grows with the run's rows. When it has passed, all jobs are cancelled,
since a query that does not end also takes the cores that the others wait for. The checks that were not done then run
again, one at a time; one that passes its limit alone is `not judged`. What several checks share (`cached`) is
not tried again for the next one. A query that goes on after its job was cancelled, such as one that is still being
planned, is ended together with Spark's process.

`ONCEPROOF_CHECK_LIMIT_S` sets the limit in seconds.

    with Watch(spark, limit_s=300) as watch:
        result = watch.run("the check order", lambda: check.judge(tables))
"""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from onceproof.harness.base.errors import BadInput, HarnessError
from onceproof.verifiers.evidence.spark import kill

VARIABLE = "ONCEPROOF_CHECK_LIMIT_S"
_LEAST_S = 300.0  # a machine that others use as well may take a minute for a small run
_ROWS_PER_S = 5_000  # a check of a run with a million inputs takes two cores about two seconds
_BYTES_PER_S = 1_000_000  # two cores read a hundred times as many
_MOST_S = 86_400.0
_GRACE_S = 20.0  # for the tasks of a cancelled job to notice
_EVERY_S = 0.2
_HINT = f"{VARIABLE} sets the limit"
_mine = threading.local()

Result = TypeVar("Result")


class Overdue(HarnessError):
    """A query was cancelled, because it took longer than its limit."""


class _Turn:
    """What one thread does, since when, whether on its own, and whether it has taken too long on its own."""

    def __init__(self, what: str, *, alone: bool) -> None:
        self.what, self.alone = what, alone
        self.began, self.overdue = time.monotonic(), False


class Watch:
    """Limits the time that threads spend in `run` to `limit_s` seconds each.

    PySpark's threads share their connections, and therefore only the jobs of all threads can be cancelled. Unless
    `again` is false, work that was not done then is done again, alone.
    """

    def __init__(self, spark: SparkSession, *, limit_s: float, again: bool = True) -> None:
        self._spark, self._limit_s, self._again = spark, limit_s, again
        self._turns: list[_Turn] = []
        self._changed = threading.Condition()
        self._one_at_a_time = threading.Lock()
        self._alone = self._killed = False
        self._canceller: threading.Thread | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="limits Spark's jobs", daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._closing.set()
        self._thread.join()

    def run(self, what: str, work: Callable[[], Result]) -> Result:
        """Return the result of `work`, which queries Spark. Raises Overdue when it does not end within the limit.

        `what` names the work in the message. Raises whatever `work` raises.
        """
        if self._again and not self._alone:
            try:
                return self._turn(_Turn(what, alone=False), work)
            except Exception:
                if not self._alone:
                    raise  # otherwise its jobs may have been cancelled because of other work
        with self._one_at_a_time:
            with self._changed:
                self._changed.wait_for(lambda: not self._turns, timeout=2 * _GRACE_S)
            turn = _Turn(what, alone=True)
            try:
                return self._turn(turn, work)
            except Exception as error:
                if turn.overdue:
                    raise Overdue(f"{what} was not done within {self._limit_s:g} s ({_HINT})") from error
                if self._killed:
                    raise Overdue(f"Spark was ended, because a query could not be cancelled ({_HINT})") from error
                raise

    def _turn(self, turn: _Turn, work: Callable[[], Result]) -> Result:
        with self._changed:
            self._turns.append(turn)
        outer, _mine.turn = getattr(_mine, "turn", None), turn
        try:
            return work()
        finally:
            _mine.turn = outer
            with self._changed:
                self._turns.remove(turn)
                self._changed.notify_all()

    def _watch(self) -> None:
        while not self._closing.wait(_EVERY_S):
            with self._changed:
                turns = list(self._turns)
            late_s = max((time.monotonic() - turn.began for turn in turns), default=0.0) - self._limit_s
            if late_s < 0:
                continue
            for turn in turns:
                turn.overdue = turn.alone
            self._alone = True
            if late_s > _GRACE_S:
                self._killed = True
                kill()
            elif not (self._canceller and self._canceller.is_alive()):
                self._canceller = threading.Thread(target=self._cancel, name="cancels Spark's jobs", daemon=True)
                self._canceller.start()  # in a thread of its own, since Spark's process may not answer

    def _cancel(self) -> None:
        with suppress(Exception):  # if Spark's process has ended, the queries have ended, too
            self._spark.sparkContext.cancelAllJobs()


def computed(compute: Callable[[], Result]) -> Callable[[], Result]:
    """Compute what several checks share, and return a function that returns it.

    If the limit of the check that needed it first has passed meanwhile, the function raises Overdue, so that no other
    check waits for the same query. Raises whatever `compute` raises otherwise.
    """
    try:
        result = compute()
    except Exception:
        turn: _Turn | None = getattr(_mine, "turn", None)
        if turn is None or not turn.overdue:
            raise
        says = f"what {turn.what} needs as well could not be computed in time ({_HINT})"
        return _raising(Overdue(says))
    return lambda: result


def _raising(error: Exception) -> Callable[[], Any]:
    def fails() -> Any:
        raise error

    return fails


def limit_s(rows: int, *, read_bytes: float = 0) -> float:
    """Return the limit of one check of a run with this many rows, in seconds; one more for each megabyte that is read.

    Raises BadInput for a bad variable.
    """
    return _of_rows(rows) + read_bytes / _BYTES_PER_S


def _of_rows(rows: int) -> float:
    told = os.environ.get(VARIABLE)
    if not told:
        return _LEAST_S + rows / _ROWS_PER_S
    try:
        seconds = float(told)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= _MOST_S:
        raise BadInput(f"{VARIABLE}: {told[:40]!r}; allowed: seconds, more than 0 and at most {_MOST_S:g}")
    return seconds
