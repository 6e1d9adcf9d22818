"""Say how far Spark's tasks are with tables of many records: how many are read, the rate, and the time that is left.

    with told(spark, progress.far, total=20_000_000):
        …                             12,400,000 of 20,000,000 records, 450,000/s, 17 s left

Executors report what their tasks have read with each heartbeat (`spark.executor.heartbeatInterval`).
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.sql import SparkSession

_EVERY_S = 2.0


@contextmanager
def told(spark: SparkSession, say: Callable[[str], None] | None, *, total: int = 0) -> Iterator[None]:
    """Call `say` every two seconds during the block with the number of records that tasks have read; None: do not ask.

    `total` is the number that they read when all is done, or 0 if it is not known.
    """
    if say is None:
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_tell, args=(_Read(spark), say, total, ended), name="tells what is read")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _tell(read: "_Read", say: Callable[[str], None], total: int, ended: threading.Event) -> None:
    began = time.monotonic()
    while not ended.wait(_EVERY_S):
        with suppress(Exception):  # if Spark's process has ended, its queries say so
            say(said(read.records(), total, time.monotonic() - began))


def said(records: int, total: int, spent_s: float) -> str:
    """Return the number of records in words, with their rate since the start and the time that is left."""
    of, left = (f" of {total:,}" if total else ""), ""
    if total and records:
        left = f", {max(0, total - records) * spent_s / records:.0f} s left"
    return f"{records:,}{of} records, {records / spent_s:,.0f}/s{left}"


class _Read:
    """Sums what the stages of a context have read since now."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._store = context._jsc.sc().statusStore()
        self._stages: dict[int, int] = {}

    def records(self) -> int:
        active = self._store.activeStages()
        running = {}
        for index in range(active.size()):
            stage = active.apply(index)
            running[stage.stageId()] = stage.inputRecords()
        self._stages |= running
        for ended in self._stages.keys() - running.keys():
            with suppress(Exception):  # Spark keeps the last stages only
                self._stages[ended] = self._store.lastStageAttempt(ended).inputRecords()
        return sum(self._stages.values())
