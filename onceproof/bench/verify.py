"""Measure how long a verdict takes, compared with other readers of the same topics.

    onceproof bench verify --records 10_000_000

For each size of record, this fills topics with N records in transactions, and with a tenth of N to measure the growth.
Then it measures in turns: Kafka's ConsumerPerformance, a plain Python consumer with a dict, and our collect and verify,
as full proof and in ledger mode. Results are medians over the rounds, and ratios of these. A cold full proof includes
the start of Spark's JVM. The time in which our source reads both topics and discards the records is measured as well,
since it is a lower bound for collect. The topics have one replica each, so that ten million records of a kilobyte fit
on a disk twice.

    <folder>/verify.json    every measured number, and the targets
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from onceproof.bench import baselines
from onceproof.bench.verified import FULL, KAFKA, LEDGER, PLAIN, READERS, SOURCE, Measured, Turn, targets
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.base.progress import Progress
from onceproof.harness.cluster import pool, topology
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.settled import judged
from onceproof.harness.model.scenario import Scenario
from onceproof.harness.model.spec import WorkloadSpec
from onceproof.harness.record.events import Event, Filled, Finished
from onceproof.harness.record.results import Mode
from onceproof.run import ready
from onceproof.run.ready import is_from
from onceproof.run.run import Run
from onceproof.verifiers.collect import collect, records
from onceproof.verifiers.collect.pinned import pin
from onceproof.verifiers.evidence import spark
from onceproof.verifiers.verify import verify as judge
from onceproof.workloads import processes

SCHEMA_VERSION = 1
SPEC = Scenario(name="bench-verify", about="Filled as fast as possible.", workload=WorkloadSpec(name="copy"))
_FILL_STARTS_S = 120.0
_SLOWEST_FILL = 10_000  # records in a second; two cores fill some 30,000
_OF_A_FILLER = {"records", "record_bytes", "keys", "partitions", "transaction_records", "compression"}


class FillRun(Run):
    """A run whose topics are filled by fillers, without workers."""

    def work(self) -> None:
        """Create the topics and fill them. Raises DeadlineError when a filler does not finish."""
        workload = self.plan.scenario.workload
        ready.describe(self.context, self.folder, command=self._command, versions=self._versions())
        ready.make_topics(self.context, replicas=1)
        done: dict[str, int] = {}

        def show(event: Event) -> None:
            if isinstance(event, Filled):
                done[event.source] = event.records
                self.progress.live(f"{sum(done.values()):,} of {workload.records:,} records")

        self.history.listen(show)
        for worker in range(workload.workers):
            self.workers.start_other(worker, processes.FILLER, self._filler(worker))
        deadline_s = _FILL_STARTS_S + workload.records / _SLOWEST_FILL
        for worker in range(workload.workers):
            self.history.wait(
                f"filler {worker} to finish",
                Finished,
                partial(is_from, f"worker-{worker}"),
                deadline_s=deadline_s,
                abort=self.workers.failures.check_started,
            )
        self.history.forget()

    def _filler(self, worker: int) -> dict[str, Any]:
        """Return the configuration of one of the processes that fill the topics."""
        work = self.plan.scenario.workload
        return {
            "fillers": work.workers,
            "seed": self.plan.seed,
            "topics": dict(self.names.topics),
            "group": self.names.group,
            "ledger": str(self.folder / "ledger"),
            "transactional_id": self.names.transactional_id(worker),
            **work.model_dump(include=_OF_A_FILLER),
        }


def verify(
    *,
    records: int,
    sizes: Sequence[int],
    rounds: int,
    readers: Sequence[str],
    compression: str,
    folder: Path,
    progress: Progress,
    master: str,
) -> list[Measured]:
    """Fill topics and measure readers, for each size and first with a tenth of the records.

    `rounds` is the number of turns of each reader, `readers` has names of `verified.READERS`, and `compression` is the
    `compression.type` of the producers. Raises HarnessError when a reader fails, reads wrong records, or the verdict is
    not valid.
    """
    found = []
    with pool.lease(SPEC.cluster, keep=False, say=progress.say) as cluster:
        for record_bytes in sizes:
            for count in (max(1, records // 10), records):
                workload = SPEC.workload.model_copy(
                    update={
                        "records": count,
                        "record_bytes": record_bytes,
                        "transaction_records": 2_000,
                        "compression": compression,
                        "observer": False,
                    }
                )
                progress.phase(f"fill {count:,} records of {record_bytes} B")
                filled = FillRun(
                    SPEC.model_copy(update={"workload": workload}),
                    seed=1,
                    cluster=cluster,
                    runs=folder,
                    progress=progress,
                    master=master,
                )
                try:
                    filled.work()
                    filled.quiesce()
                    measured = _measure(filled, rounds, readers, progress, master)
                    found.append(measured)
                    if FULL in measured.turns:
                        _repeat(measured, filled, rounds * (records // count - 1), progress, master)
                finally:
                    filled.close()
                shutil.rmtree(filled.folder)
                _write(found, folder)
    return found


def _measure(filled: FillRun, rounds: int, names: Sequence[str], progress: Progress, master: str) -> Measured:
    """Measure readers on the topics of one filling."""
    workload = filled.plan.scenario.workload
    measured = Measured(
        records=workload.records,
        record_bytes=workload.record_bytes,
        compressed=workload.compression != "none",
    )
    readers: dict[str, Callable[[], Turn]] = {
        KAFKA: lambda: _turn(baselines.kafka(filled.context, 2 * workload.records)),
        SOURCE: lambda: _timed(whole=lambda: read_only(filled.context, master=master)),
        FULL: lambda: _ours(filled, "full", master),
        LEDGER: lambda: _ours(filled, "ledger", master),
        PLAIN: lambda: _turn(baselines.plain(filled.context)),
    }
    progress.phase(f"measure {workload.records:,} records of {workload.record_bytes} B")
    wanted = [READERS[name] for name in names]
    if FULL in wanted:
        spark.stop()
        measured.cold = _ours(filled, "full", master)
        progress.say(f"cold: {measured.cold.whole:.1f} s")
    for _ in range(rounds):
        for name in wanted:
            turn = readers[name]()
            measured.turns.setdefault(name, []).append(turn)
            progress.say(f"{name}: {turn.whole:.1f} s, {turn.peak_mb:.0f} MB")
    return measured


def _repeat(measured: Measured, filled: FillRun, times: int, progress: Progress, master: str) -> None:
    """Measure the memory of more full proofs, so that Spark's process has judged as many records as for all of them."""
    for _ in range(times):
        turn = _ours(filled, "full", master)
        measured.further_mb.append(turn.peak_mb)
        progress.say(f"{FULL} again: {turn.whole:.1f} s, {turn.peak_mb:.0f} MB")


def read_only(context: FaultContext, *, master: str) -> None:
    """Read what `collect` reads from the topics for a full proof, and discard it; raises as `collect` does.

    The time that this takes is a lower bound for `collect`.
    """
    session, bootstrap = spark.session(master), context.cluster.bootstrap(topology.OBSERVER_LANE)
    pinned = pin(context.cluster.admin, judged(context))
    outputs = records.read_outputs(session, bootstrap, context, pinned, "read_committed", Path()).values()
    frames = [records.read_inputs(session, bootstrap, context, pinned), *outputs]
    with ThreadPoolExecutor(len(frames)) as threads:
        list(threads.map(lambda frame: frame.write.format("noop").mode("overwrite").save(), frames))


def _turn(measured: tuple[float, float]) -> Turn:
    return Turn(seconds={"whole": measured[0]}, peak_mb=measured[1])


def _ours(filled: FillRun, mode: Mode, master: str) -> Turn:
    """Measure collect and verify in a copy of the run's folder. Raises HarnessError unless the verdict is valid."""
    folder = filled.folder.with_name(f"{filled.folder.name}-{mode}")
    shutil.copytree(filled.folder, folder, copy_function=os.link)
    try:
        return _timed(
            collect=lambda: collect.collect(filled.context, folder, mode=mode, master=master),
            verify=lambda: _judge(folder, master),
        )
    finally:
        shutil.rmtree(folder)


def _timed(**parts: Callable[[], None]) -> Turn:
    """Execute the parts in this process, one after the other, and return their seconds and the peak memory."""
    seconds = {}
    with baselines.peak(os.getpid()) as highest:
        for name, part in parts.items():
            started = time.monotonic()
            part()
            seconds[name] = time.monotonic() - started
    return Turn(seconds=seconds, peak_mb=highest[0])


def _judge(folder: Path, master: str) -> None:
    results = judge(folder, master=master)
    if results.verdict != "valid":
        says = [reason.says for reason in results.reasons] + [each.says for each in results.findings]
        raise HarnessError(f"{results.headline}: {'; '.join(says)}"[:500])


def _write(found: Sequence[Measured], folder: Path) -> None:
    """Write what has been measured so far to verify.json."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "measured": [asdict(each) for each in found],
        "targets": [asdict(each) for each in targets(found[: len(found) // 2 * 2])],
    }
    (folder / "verify.json").write_text(json.dumps(document, indent=1) + "\n")
