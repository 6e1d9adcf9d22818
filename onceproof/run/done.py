"""Wait until an application has processed every input, by what its scenario says (`[done]`).

    group       lag 0
    sentinel    the last input of each partition has an output on every topic
    quiet       no output has been written for so many seconds

What has no output when the deadline passes is not lost: the run is `stalled`.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import functions as F

from onceproof.harness.base.deadlines import until
from onceproof.harness.cluster import topology
from onceproof.harness.cluster.described import Partition
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.settled import lag
from onceproof.verifiers.collect import database, records
from onceproof.verifiers.evidence import spark as sessions
from onceproof.verifiers.evidence.frames import rows

_DEADLINE_S = 120.0


def wait(context: FaultContext, folder: Path, master: str) -> None:
    """Wait until every input is processed. `folder` is the run folder, and `master` Spark's, for a sentinel.

    Raises DeadlineError when it is not within 120 seconds, and the failure of the workers if there is one.
    """
    done = context.plan.scenario.done
    reached: Callable[[], bool] = partial(_no_lag, context)
    what, quiet_s = "lag 0", done.quiet_s or 0.0
    if context.plan.scenario.pipeline.in_database:
        what, reached = (
            "positions in the database that are the ends of the input",
            partial(_in_database, context, folder, master),
        )
    if done.by == "sentinel":
        what, reached = (
            "an output of the last input of each partition on every topic",
            Sentinel(context, folder / "ledger", master).reached,
        )
    elif done.by != "group":
        what, reached = f"no new output for {quiet_s:g} s", Quiet(context, quiet_s, folder, master).reached
    until(what, reached, deadline_s=_DEADLINE_S + quiet_s, abort=context.workers.failures.check)


def _no_lag(context: FaultContext) -> bool:
    return lag(context) == 0


def _in_database(context: FaultContext, folder: Path, master: str) -> bool:
    """Return whether the positions that workers keep in a database are the ends of the input."""
    read, names = records.positions(sessions.session(master), context, folder), context.names
    places = [(names.input, partition) for partition in context.cluster.admin.partitions(names.input)]
    ends = context.cluster.admin.offsets(places, "latest", "read_uncommitted")
    return all(read.get(partition, 0) == end for (_, partition), end in ends.items())


def _outputs(context: FaultContext) -> list[Partition]:
    admin, names = context.cluster.admin, context.names
    topics = [names.topic(role) for role in context.plan.scenario.pipeline.judged]
    return [(topic, partition) for topic in topics for partition in admin.partitions(topic)]


class Quiet:
    """Whether the ends of all outputs' partitions have stayed where they are, and the numbers of rows in tables."""

    def __init__(self, context: FaultContext, seconds: float, folder: Path, master: str) -> None:
        self._context, self._seconds, self._folder = context, seconds, folder
        self._spark = sessions.session(master)
        self._seen: tuple[dict[Partition, int], dict[str, int]] = {}, {}
        self._since = time.monotonic()

    def reached(self) -> bool:
        """Return whether that has been so for long enough; each call looks again."""
        context = self._context
        ends = context.cluster.admin.offsets(_outputs(context), "latest", "read_uncommitted")
        tables = records.stored(context, self._folder)
        sizes = {table: database.read(self._spark, *place).count() for table, place in tables.items()}
        if (ends, sizes) != self._seen:
            self._seen, self._since = (ends, sizes), time.monotonic()
        return time.monotonic() - self._since >= self._seconds


class Sentinel:
    """Whether the last input of each partition has an output on every topic.

    Each call reads what has been committed to the outputs' topics since the one before.
    """

    def __init__(self, context: FaultContext, ledger: Path, master: str) -> None:
        self._context, self._ledger = context, ledger
        self._spark = sessions.session(master)
        self._read: dict[Partition, int] = {}
        work = context.plan.scenario.pipeline
        last = self._last()
        self._missing = {role: set(last) for role in work.compared}

    def _last(self) -> list[int]:
        """Return the numbers of the last inputs of the partitions."""
        inputs = self._spark.read.parquet(str(self._ledger.absolute() / "sent-*.parquet"))
        last = inputs.groupBy("partition").agg(F.max_by("number", "offset").alias("number"))
        return [row["number"] for row in rows(last)]

    def reached(self) -> bool:
        """Return whether every one of them has been read by now."""
        context, places = self._context, _outputs(self._context)
        ends = context.cluster.admin.offsets(places, "latest", "read_committed")
        pinned = [
            {"topic": topic, "partition": partition, "start": self._read.get((topic, partition), 0), "end": end}
            for (topic, partition), end in ends.items()
        ]
        bootstrap = context.cluster.bootstrap(topology.OBSERVER_LANE)
        frames = records.read_outputs(self._spark, bootstrap, context, pinned, "read_committed", self._ledger)
        for role, frame in frames.items():
            wanted = self._missing[role]
            found = frame.where(F.col("number").isin(list(wanted))).select("number").distinct()  # speed
            wanted -= {row["number"] for row in rows(found)}
        self._read = ends
        return not any(self._missing.values())
