"""The Spark session: one a process, started once, with our source of topics.

spark = session()                                  local[2], 768 MiB
spark = session("spark://host:7077")               a Spark cluster, the same plans
"""

import gc
import logging
import os
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import BatchedSerializer, CPickleSerializer
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.util import local_connect_and_auth

from onceproof.harness.base import paths
from onceproof.verifiers.collect import topics

_MEMORY = "768m"
# A verdict of a small run is made of code that runs a few times only: the optimizing compiler must not take a core from
# it. What is hot in a large one gets there all the same, since it is called for each row. (HotSpot: 5000, 600, 15000,
# and 40000 for loops.)
_JVM = (
    "-XX:+UseParallelGC -XX:Tier4InvocationThreshold=200000 -XX:Tier4MinInvocationThreshold=50000 "
    "-XX:Tier4CompileThreshold=200000 -XX:Tier4BackEdgeThreshold=160000"
)
_STOP_DEADLINE_S = 20
_lock = threading.Lock()
_started: list[SparkSession] = []  # at most one; Spark's own idea of an active session is one a thread
_warm: list[bool] = []
# PySpark's own log of failed queries, a page of JSON each; the exceptions say it, and are handled.
logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL + 1)
# Of a JVM that died py4j would log each try to reach it, with all those before it.
logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)


def session(master: str = "local[2]") -> SparkSession:
    """The process's session; it is started by the first call. Later calls get it whatever `master` they name.

    Raises whatever PySpark raises when the JVM does not come up or the master does not answer.
    """
    with _lock:
        if _started and not _lives(_started[0]):
            _end()  # whoever killed it: a new one
        if _started:
            return _started[0]
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PIN_THREAD", "false")  # a connection a thread would stay open when it ends
        conf = SparkConf().setMaster(master).setAppName("onceproof").setAll(list(_settings().items()))
        # A JVM of our own launching, since its start-up chatter must not mix with the progress on stderr.
        gateway: Any = launch_gateway(conf=conf, popen_kwargs=_process())  # type: ignore[no-untyped-call]
        _remember(gateway.jvm)
        _started.append(SparkSession(SparkContext(conf=conf, gateway=gateway)))
        return _started[0]


def _remember(jvm: Any) -> None:
    """Keep what PySpark asks the JVM for by name each time it is used, some hundred times a verdict. The JVM looks for
    some of these names in all of its jars."""
    for name in ("functions", "PythonUtils", "PythonSQLUtils"):
        setattr(jvm, name, getattr(jvm, name))
    for name in ("sql.functions", "sql.classic.SparkSession", "storage.StorageLevel", "sql.expressions.Window"):
        setattr(jvm, f"org.apache.spark.{name}", getattr(jvm, f"org.apache.spark.{name}"))
    for name in ("col", "expr", "lit"):
        setattr(jvm.functions, name, getattr(jvm.functions, name))
    jvm.PythonUtils.toSeq = jvm.PythonUtils.toSeq


def _lives(spark: SparkSession) -> bool:
    """Whether there is still a JVM with a context that takes jobs: out of memory, it may have neither, or only one."""
    context: Any = spark.sparkContext
    with suppress(Exception):
        return _process_of(spark).poll() is None and not context._jsc.sc().isStopped()
    return False


def _process_of(spark: SparkSession) -> Any:
    gateway: Any = spark.sparkContext._gateway
    return gateway.proc


def _process() -> dict[str, Any]:
    """Where the JVM runs: Spark leaves a folder `artifacts` in its working directory, which must not be the user's."""
    cwd = paths.home() / "spark"
    cwd.mkdir(parents=True, exist_ok=True)
    return {"stderr": subprocess.DEVNULL, "cwd": str(cwd)}


def warm_up(master: str = "local[2]") -> None:
    """Start the session, and take a small table through what collect and verify do, so that their code is loaded."""
    spark = session(master)
    if _warm:
        return
    _warm.append(True)
    with tempfile.TemporaryDirectory() as folder:
        rows = spark.range(1000).selectExpr(
            "cast(id % 3 AS int) AS partition",
            "id AS offset",
            "xxhash64(cast(cast(id AS string) AS binary)) AS digest",
            "id div 10L % 10L AS told",
        )
        rows.write.parquet(f"{folder}/rows")
        read = spark.read.schema(rows.schema).parquet(f"{folder}/rows")
        read.unionAll(read).groupBy("offset").agg({"digest": "max", "told": "max"}).where("offset < 0").count()


def rows(frame: DataFrame) -> list[Row]:
    """The rows of a small frame. (PySpark's own `collect` leaves its socket to the garbage collector, which warns.)"""
    port, secret, _ = frame._jdf.collectToPython()  # done when it returns; only the answer is still to be read
    answer, connection = local_connect_and_auth(port, secret)
    batches: Any = BatchedSerializer(CPickleSerializer())  # type: ignore[no-untyped-call]
    with closing(connection), closing(answer):
        return list(batches.load_stream(answer))


def let_go(spark: SparkSession) -> None:
    """Free what a verdict kept in memory. PySpark's frames refer to themselves in circles: until Python collects them,
    which it seldom does, the JVM keeps every one with its plan."""
    spark.catalog.clearCache()
    context: Any = spark.sparkContext
    for kept in context._jsc.getPersistentRDDs().values():  # of the checkpoints of `Tables.gathered`
        kept.unpersist()
    gc.collect()


def unless_empty(frame: DataFrame) -> DataFrame | None:
    """The frame, kept in memory; None when it has no rows."""
    kept = frame.persist()
    if kept.isEmpty():
        kept.unpersist()
        return None
    return kept


_ARROW = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64()}


def small(spark: SparkSession, rows: Sequence[Sequence[Any]], columns: str) -> DataFrame:
    """A small frame of ours, `columns` as in "topic string, partition int, start bigint". It goes to Spark as Arrow,
    which makes it part of the plan; a list would cost a job of its own."""
    names = [column.split() for column in columns.split(", ")]
    arrays = [pa.array([row[index] for row in rows], _ARROW[kind]) for index, (_, kind) in enumerate(names)]
    return spark.createDataFrame(pa.table(arrays, names=[name for name, _ in names]))


def _settings() -> dict[str, str]:
    return {
        "spark.jars": ",".join(map(str, topics.jars())),
        "spark.driver.memory": _MEMORY,
        "spark.driver.extraJavaOptions": _JVM + _huge_pages(),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # What the user interface would show is kept although there is none, each query with its plan: a session that
        # gives many verdicts would fill the heap with it.
        "spark.sql.ui.retainedExecutions": "1",
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        "spark.ui.retainedTasks": "200",
        "spark.sql.shuffle.partitions": "2",
        "spark.buffer.pageSize": "1m",  # else 4 to 16 MiB for each hash table, however small, until the JVM collects it
        "spark.sql.codegen.cache.maxEntries": "1000",  # what a verdict compiles (200 to 300), for the next one
        "spark.sql.session.timeZone": "UTC",
        "spark.python.sql.dataFrameDebugging.enabled": "false",  # else each call asks the JVM three more questions
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.limit.initialNumPartitions": "64",  # "is it empty" as one job, not a few
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",  # a ledger of many files, without a job
    }


def _huge_pages() -> str:
    """The option for them where the kernel gives them to who asks; elsewhere the JVM would complain on stdout."""
    offered = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    asked = offered.exists() and "[never]" not in offered.read_text()
    return " -XX:+UseTransparentHugePages" if asked else ""


def stop() -> None:
    """End the session and its JVM, if there is one."""
    with _lock:
        if _started:
            _end()


def _end() -> None:
    """End the session that was started, whether its JVM still lives or not."""
    spark = _started.pop()
    gateway: Any = spark.sparkContext._gateway
    if gateway.proc.poll() is None:
        with suppress(Exception):  # a JVM that is dying need not answer
            spark.stop()
            gateway.shutdown()
    gateway.proc.stdin.close()  # its JVM ends when this closes
    try:
        gateway.proc.wait(_STOP_DEADLINE_S)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait(_STOP_DEADLINE_S)
    _warm.clear()
    # What PySpark itself remembers, also of a session whose JVM has died.
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = None
