"""Refuse executors that cannot do the work, before they are given any: none, those of another Spark, or other folders.

Executors that run elsewhere need Java 17 or later and the driver's release of Spark. They need no Python, since all
their work is done in the JVM. The driver must see what they write, at the same path: Spark does not notice that an
executor has written its files to a disk of its own.
"""

import shutil
import time
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from onceproof.harness.base.errors import HarnessError, in_a_line

_DEADLINE_S = 60.0
_POLL_S = 0.2
_TASKS_EACH = 2  # of an executor, so that each of them most likely executes one
_NEEDS = f"they need Java 17 or later and Spark {pyspark.__version__}; their workers' logs say more"


def wait(context: SparkContext, master: str) -> None:
    """Wait until an executor has registered. Raises HarnessError when none has within 60 s, or the master gave up."""
    java: Any = context
    deadline = time.monotonic() + _DEADLINE_S
    while time.monotonic() < deadline:
        if java._jsc.sc().isStopped():
            raise HarnessError(f"{master}: its executors end as soon as they start; {_NEEDS}")
        if number(context):
            return
        time.sleep(_POLL_S)
    driver = context.getConf().get("spark.driver.host")
    raise HarnessError(
        f"{master}: waited {_DEADLINE_S:g} s for an executor; executors end as soon as they start, its workers have no "
        f"free core or memory, or they do not reach the driver at {driver}; {_NEEDS}"
    )


def number(context: SparkContext) -> int:
    """Return how many executors there are, without the driver."""
    java: Any = context
    return len(java._jsc.sc().statusTracker().getExecutorInfos()) - 1


def _tasks(spark: SparkSession) -> int:
    return _TASKS_EACH * max(1, number(spark.sparkContext))


def _answers(told: DataFrame) -> set[str]:
    return {row.getString(0) for row in told._jdf.collectAsList()}  # collect() leaves a socket open


def check_version(spark: SparkSession, master: str) -> None:
    """Raise HarnessError when executors have another release of Spark than the driver, or cannot execute a task."""
    told = "java_method('org.apache.spark.package', 'SPARK_VERSION')"
    try:
        tasks = _tasks(spark)
        found = _answers(spark.range(0, tasks, 1, tasks).selectExpr(told))
    except Exception as error:
        raise HarnessError(f"{master}: its executors cannot execute a task: {in_a_line(error)}; {_NEEDS}") from error
    if found - {pyspark.__version__}:
        raise HarnessError(f"{master}: its executors have Spark {', '.join(sorted(found))}; {_NEEDS}")


def check_folder(spark: SparkSession, folder: Path) -> None:
    """Raise HarnessError unless what executors write to a folder is in that folder here."""
    probe, tasks = folder / ".written-by-executors", _tasks(spark)
    lines = spark.range(0, tasks, 1, tasks).selectExpr("cast(id AS string) AS value")
    try:
        lines.write.mode("overwrite").text(str(probe))
        seen = sum(len(part.read_text().splitlines()) for part in probe.glob("part-*"))
    except Exception as error:
        raise HarnessError(f"{folder}: executors cannot write into it: {in_a_line(error)}") from error
    finally:
        shutil.rmtree(probe, ignore_errors=True)
    if seen < tasks:
        raise HarnessError(
            f"{folder}: executors wrote {tasks} lines into a folder of this name, and {seen} are here; allowed: a "
            "folder on storage that has the same path on the driver and on every executor"
        )


def check_run(spark: SparkSession, file: str, here: Path) -> None:
    """Raise HarnessError unless executors read the same in a file of a run folder, by its path or its URI, as here."""
    try:
        found = _answers(spark.read.text([file] * _tasks(spark), wholetext=True))
        problem = "" if found == {here.read_text()} else "they find another file there"
    except Exception as error:
        problem = _cause(error)
    if problem:
        raise HarnessError(
            f"{file}: executors cannot read it: {problem}; allowed: a run folder that has the same path on "
            "the driver and on every executor, or --storage URI"
        )


def _cause(error: Exception) -> str:
    """Return the first line of what caused an error of Spark's at first."""
    java: Any = getattr(error, "java_exception", None)
    while java is not None and java.getCause() is not None:
        java = java.getCause()
    return in_a_line(error) if java is None else str(java.toString()).partition("\n")[0]


def check_reads(spark: SparkSession, folder: Path) -> None:
    """Raise HarnessError unless executors can read a folder that is here, at the same path."""
    tasks, own = _tasks(spark), spark.newSession()  # a verdict removes java_method from its session (`model_sql`)
    told = own.range(0, tasks, 1, tasks).withColumn("path", F.lit(str(folder.resolve())))
    if _answers(told.selectExpr("java_method('onceproof.SegmentSource', 'readable', path)")) != {"true"}:
        raise HarnessError(
            f"{folder}: executors cannot read it; allowed: a folder that has the same path on the driver and on every "
            "executor"
        )
