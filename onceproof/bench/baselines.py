"""Measure other readers of the same topics as separate processes, and the memory of a process tree.

    seconds, peak = baselines.kafka(context, records)     Kafka's own ConsumerPerformance, which counts the records
    seconds, peak = baselines.plain(context)              a Python consumer with a dict, which looks up each input

The seconds are wall time. The peak is the resident memory in MB of the process and its children, sampled ten times a
second. Both readers read inputs and outputs under read_committed, with settings that were tuned for each of them.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from onceproof.harness.artifacts import jars
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.base.memory import resident_mb
from onceproof.harness.cluster import topology
from onceproof.harness.context.context import FaultContext
from onceproof.workloads import processes

_DEADLINE_S = 900
_EVERY_S = 0.1
_CONFIG = """isolation.level=read_committed
max.poll.records=5000
fetch.max.bytes=104857600
auto.offset.reset=earliest
"""
Measured = tuple[float, float]
Look = Callable[[psutil.Process], float]


def kafka(context: FaultContext, records: int) -> Measured:
    """Read both topics in one process of Kafka's ConsumerPerformance, and return seconds and MB.

    `records` is the number of records in both topics. Raises HarnessError when the process fails, does not end within
    its deadline, or reads fewer records.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".properties") as config:
        config.write(_CONFIG)
        config.flush()
        command = [
            "java",
            "-cp",
            str(jars.kafka(context.plan.scenario.cluster.version) / "*"),
            "-Dlog4j2.level=OFF",
            "org.apache.kafka.tools.ConsumerPerformance",
            "--bootstrap-server",
            _bootstrap(context),
            "--include",
            f"{context.names.prefix}-(input|output)",
            "--num-records",
            str(records),
            "--command-config",
            config.name,
            "--fetch-size",
            str(16 << 20),
            "--timeout",
            "60000",
            "--hide-header",
        ]
        said, seconds, peaks = run(command)
    read = int(said.strip().splitlines()[-1].split(",")[4])
    if read < records:
        raise HarnessError(f"ConsumerPerformance read only {read} of {records} records")
    return seconds, peaks[0]


def plain(context: FaultContext) -> Measured:
    """Read both topics with a plain Python consumer that looks up each input in a dict; return seconds and MB.

    Raises HarnessError when the process fails, does not end within its deadline, or finds a wrong or missing output.
    """
    config = {"bootstrap": _bootstrap(context), "input": context.names.input, "output": context.names.topic("output")}
    said, seconds, peaks = run([sys.executable, "-P", "-m", processes.PLAIN_READER, json.dumps(config)])
    found = json.loads(said)
    if found["wrong"] or found["missing"]:
        raise HarnessError(f"the plain reader found {found}")
    return seconds, peaks[0]


@contextmanager
def peak(pid: int, *what: Look) -> Iterator[list[float]]:
    """Measure the peaks of a process while the block runs: of its memory in MB, or of what `what` returns.

    Yields a list with one number for each, which grow until the end of the block.
    """
    looks = what or (resident_mb,)
    found, done = [0.0] * len(looks), threading.Event()

    def look() -> None:
        while not done.wait(_EVERY_S):
            for place, each in enumerate(looks):
                with suppress(psutil.Error):
                    found[place] = max(found[place], each(psutil.Process(pid)))

    watcher = threading.Thread(target=look, name="memory watcher", daemon=True)
    watcher.start()
    try:
        yield found
    finally:
        done.set()
        watcher.join()


def run(command: Sequence[str], *what: Look) -> tuple[str, float, list[float]]:
    """Run a command and return its output, its seconds, and peaks as `peak` does. Raises HarnessError if it fails."""
    started = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        with peak(process.pid, *what) as highest:
            try:
                said, complaint = process.communicate(timeout=_DEADLINE_S)
            except BaseException as error:
                process.kill()
                if isinstance(error, subprocess.TimeoutExpired):
                    raise HarnessError(f"{Path(command[0]).name}: did not end within {_DEADLINE_S} s") from None
                raise
        seconds = time.monotonic() - started
    if process.returncode:
        raise HarnessError(f"{Path(command[0]).name} ended with exit status {process.returncode}: {complaint[-300:]}")
    return said, seconds, highest


def _bootstrap(context: FaultContext) -> str:
    return context.cluster.bootstrap(topology.OBSERVER_LANE)
