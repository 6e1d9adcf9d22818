"""Measure how fast a topic is copied in transactions, by our workers and by others, through the same lane.

    onceproof bench copy --records 200_000

    ours, librdkafka    one worker of onceproof, in Python
    ours, java          the same worker with the Java client, called from Python
    Apache's            TransactionalMessageCopier of Kafka's own system tests
    Java                a loop of poll, send, sendOffsetsToTransaction and commit in Java

Each copies a topic with six partitions that was filled before, in transactions of at most 1,000 records, with the
offsets in the transaction. The rate is that of the committed offsets, from the first commit that is seen to the last,
so that the start of a process does not count. Copiers are measured in turns, and compared with the loop in Java.
"""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from onceproof.bench import baselines, claims
from onceproof.bench.paired import interval
from onceproof.harness.artifacts import jars
from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.base.progress import Progress
from onceproof.harness.cluster import pool, topology
from onceproof.harness.cluster.cluster import Cluster
from onceproof.harness.context.settled import lag
from onceproof.harness.model.scenario import Scenario
from onceproof.harness.model.spec import ClusterSpec, WorkloadSpec
from onceproof.run import ready
from onceproof.run.run import Run

OURS = {"ours, librdkafka": "librdkafka", "ours, java": "java"}
APACHE, JAVA = "Apache's", "Java"
_IN_TRANSACTION = 1_000
_DEADLINE_S = 300.0
Rates = dict[str, list[float]]  # a copier → records per second of each turn


class CopyRun(Run):
    """A run whose input is filled before it is copied, by a worker or by another program, and that is not judged."""

    def rate(self, copier: str) -> float:
        """Return the records per second of a copier. Raises HarnessError when it fails, and DeadlineError."""
        work = self.plan.scenario.workload
        ready.describe(self.context, self.folder, command="", versions=self._versions())
        ready.make_topics(self.context)
        asked = {"what": "fill", "topic": self.names.input, "committed": work.records, "aborted": 0}
        bootstrap = self.cluster.bootstrap(topology.lane_of_worker(0))
        filled = {**asked, "bytes": work.record_bytes, "bootstrap": bootstrap}
        baselines.run([*claims.LIBRDKAFKA, json.dumps(filled)])
        if copier in OURS:
            self.workers.start()
            return self._measured(None)
        command = self._java(bootstrap) if copier == JAVA else self._apache(bootstrap)
        with _running(command) as process:
            return self._measured(process)

    def _measured(self, process: subprocess.Popen[str] | None) -> float:
        """Wait until everything is copied, and return the rate of the committed offsets."""
        seen: list[tuple[float, int]] = []

        def copied() -> bool:
            if process is not None and process.poll():
                raise HarnessError(f"the copier ended with exit status {process.returncode}: {_complaint(process)}")
            committed = sum(offset for offset, _ in self.cluster.admin.group_offsets(self.names.group).values())
            if committed > (seen[-1][1] if seen else 0):
                seen.append((time.monotonic(), committed))
            return bool(seen) and lag(self.context) == 0

        until("everything to be copied", copied, deadline_s=_DEADLINE_S, abort=self.workers.failures.check)
        (began, first), (ended, last) = seen[0], seen[-1]
        if ended == began:
            raise HarnessError("everything was copied at once; allowed: more --records")
        return (last - first) / (ended - began)

    def _java(self, bootstrap: str) -> Sequence[str]:
        asked = {
            "what": "copy",
            "topic": self.names.input,
            "output": self.names.topic("output"),
            "group": self.names.group,
            "records": _IN_TRANSACTION,
            "bootstrap": bootstrap,
        }
        return [*claims.java(self.plan.scenario.cluster.version), json.dumps(asked)]

    def _apache(self, bootstrap: str) -> Sequence[str]:
        options = {
            "input-topic": self.names.input,
            "input-partition": "0",  # required, and not used in group mode
            "output-topic": self.names.topic("output"),
            "broker-list": bootstrap,
            "consumer-group": self.names.group,
            "transaction-size": str(_IN_TRANSACTION),
            "transactional-id": self.names.transactional_id(0),
        }
        classpath = f"{jars.kafka(self.plan.scenario.cluster.version)}/*"
        program = ["java", "-cp", classpath, "-Dlog4j2.level=OFF", "org.apache.kafka.tools.TransactionalMessageCopier"]
        given = [part for name, value in options.items() for part in (f"--{name}", value)]
        return [*program, *given, "--group-mode", "--use-group-metadata"]


@contextmanager
def _running(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


def _complaint(process: subprocess.Popen[str]) -> str:
    return "" if process.stderr is None else process.stderr.read()[-300:]


def copy(
    *, records: int, sizes: Sequence[int], rounds: int, folder: Path, progress: Progress
) -> Mapping[int, Mapping[str, Sequence[float]]]:
    """Return size of a record in bytes → copier → records per second of each turn. Raises as `CopyRun.rate` does."""
    found: dict[int, Rates] = {}
    copiers = [*OURS, APACHE, JAVA]
    for size in sizes:
        rates: Rates = {name: [] for name in copiers}
        with pool.lease(ClusterSpec(), keep=False, say=progress.say) as cluster:
            for turn in range(rounds):
                for name in copiers[turn % len(copiers) :] + copiers[: turn % len(copiers)]:
                    rates[name].append(_turn(name, size, records, turn, cluster, folder, progress))
                    progress.say(f"{size} B, {name}: {rates[name][-1]:,.0f} records/s")
        found[size] = rates
        (folder / "copy.json").write_text(json.dumps({"schema_version": 1, "rates": found}, indent=1) + "\n")
    return found


def _turn(name: str, size: int, records: int, turn: int, cluster: Cluster, folder: Path, progress: Progress) -> float:
    work = WorkloadSpec(
        name="copy",
        client=OURS.get(name, "librdkafka"),
        workers=1,
        records=records,
        record_bytes=size,
        observer=False,
        transaction_records=_IN_TRANSACTION,
    )
    scenario = Scenario(name=f"bench-copy-{size}", about="A copy at full speed.", workload=work)
    run = CopyRun(scenario, seed=turn, cluster=cluster, runs=folder, progress=progress)
    try:
        return run.rate(name)
    finally:
        run.close()


def table(found: Mapping[int, Mapping[str, Sequence[float]]]) -> str:
    """Return the median rates, and the ratios to the loop in Java with their intervals, as a table in Markdown."""
    lines = [
        "| bytes of a record | copier | records/s | MB/s | relative to the loop in Java | 95% interval |",
        "|---|---|---|---|---|---|",
    ]
    for size, rates in found.items():
        for name, turns in rates.items():
            whole = interval(turns)
            ratio = interval([mine / java for mine, java in zip(turns, rates[JAVA], strict=True)])
            lines.append(
                f"| {size} | {name} | {whole.median:,.0f} | {whole.median * size / 1e6:.1f} "
                f"| {ratio.median:.2f} | {ratio.low:.2f} to {ratio.high:.2f} |"
            )
    return "\n".join(lines) + "\n"
