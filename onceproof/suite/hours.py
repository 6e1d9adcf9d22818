"""Soak for hours: each run is judged in a process of its own, while the next one is executed.

    onceproof soak --hours 2

The process that judges is replaced from time to time, so that its memory does not grow. A finding ends the soak: that
run and the one after it, which was executed meanwhile and is not judged, keep their folders.
"""

import multiprocessing
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil

from onceproof.harness.base import host
from onceproof.harness.base.memory import resident_mb
from onceproof.harness.cluster.pool import Clusters
from onceproof.harness.model.scenario import Scenario
from onceproof.harness.record.results import Results
from onceproof.suite import batch
from onceproof.suite.batch import Line
from onceproof.suite.soak import Soak, audit_of

_RUNS_MAX = 100_000
_JUDGED_BY_ONE = 20  # runs, after which another process judges
_VERDICT_DEADLINE_S = 1800.0


def soak(
    scenarios: Sequence[Scenario], *, hours: float, seed: int, options: batch.Options, say: Callable[[str], None]
) -> Soak:
    """Execute runs of the scenarios in turn for so many hours, and return the soak.

    `soak.json` and `soak.md` in the folder of `options` are rewritten after each verdict, and `say` gets a line about
    it. A file `stop` that is put into that folder ends the soak before its next run, and is removed. Raises
    HarnessError when a cluster does not come up, and TimeoutError when a verdict takes longer than half an hour.
    """
    done, end = Soak(), time.monotonic() + hours * 3600
    waiting: _Period | None = None
    batch.told_to_stop(options.folder)  # removes a file that an earlier soak has left
    clusters = Clusters(keep=options.keep, say=options.progress.say)
    with ProcessPoolExecutor(
        1,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=host.end_with_parent,
        max_tasks_per_child=_JUDGED_BY_ONE,
    ) as judge:
        try:
            for number in range(_RUNS_MAX):
                over = time.monotonic() >= end or batch.told_to_stop(options.folder)
                scenario = scenarios[number % len(scenarios)]
                following = None if over else _Period(scenario, seed + number, options, clusters, judge)
                if waiting is not None:
                    done.add(waiting.line(), options.folder)
                    say(done.last)
                    if _found(done.lines[-1]):
                        break
                if following is None:
                    break
                waiting = following
        finally:
            clusters.close()
    return done


def _found(line: Line) -> bool:
    return "invalid" in (line.verdict, line.audit)


class _Period:
    """One run: executed when this is made, and judged meanwhile."""

    def __init__(
        self, scenario: Scenario, seed: int, options: batch.Options, clusters: Clusters, judge: ProcessPoolExecutor
    ) -> None:
        options.progress.seconds.clear()
        self._run = batch.prepared(scenario, seed, options, clusters)
        self._failed = self._run.record()
        self._phases = dict(options.progress.seconds)
        self._memory_mb = resident_mb(psutil.Process())
        self._disk_mb = shutil.disk_usage(options.folder).used / 1e6
        self._ended = self._judged_at = time.monotonic()
        self._judged: Future[tuple[Results, str]] | None = None
        if self._failed is None:
            self._judged = judge.submit(_judge, self._run.folder, options.master, scenario.checks)
            self._judged.add_done_callback(self._note)

    def _note(self, _: object) -> None:
        self._judged_at = time.monotonic()

    def line(self) -> Line:
        """Wait for the verdict, and return the line of this run."""
        results, audit = self._failed, ""
        if self._judged is not None:
            results, audit = self._judged.result(_VERDICT_DEADLINE_S)
        assert results is not None  # it failed, or was judged
        return replace(
            batch.line_of(self._run, results, self._phases),
            audit=audit,
            lag_s=round(self._judged_at - self._ended, 1),
            memory_mb=round(self._memory_mb),
            disk_mb=round(self._disk_mb),
        )


def _judge(folder: Path, master: str, checks: Sequence[str]) -> tuple[Results, str]:
    """Judge a run and write its report; return its results, and the verdict of an audit of its logs."""
    from onceproof.report import report
    from onceproof.verifiers.verify import verify

    results = verify(folder, master=master, checks=checks)
    report.write(folder)
    return results, audit_of(folder, master)
