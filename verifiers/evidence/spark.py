"""Start the Spark session: one for each process, with the data sources for topics and segments.

spark = session()                                  local[2], 768 MiB
spark = session("spark://host:7077")               a Spark cluster, with the same query plans
"""

import atexit
import gc
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from py4j.java_gateway import GatewayConnection
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from onceproof.harness.base.errors import HarnessError, in_a_line
from onceproof.verifiers.evidence import executors, spark_jvm, spark_settings
from onceproof.verifiers.evidence import master as masters

_STOP_DEADLINE_S = 20
_START_DEADLINE_S = 90.0  # Spark itself gives up a standalone master that does not answer after a minute
_ROWS_OF_A_TASK = 100_000  # of a hash table, which take some 10 MB
_lock = threading.Lock()
_started: list[SparkSession] = []  # at most one; Spark's own active session is one for each thread
_gateways: list[Any] = []  # at most one: that of the session, or of one that is being started
_warm: list[bool] = []
_few: list[bool] = []  # at most one: whether the JVM was started for few records
# PySpark logs a page of JSON for each failed query; the exceptions have the same information and are handled.
logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL + 1)
# If a JVM has died, py4j logs each attempt to reach it, together with all earlier attempts.
logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
logging.getLogger().addFilter(lambda record: not record.pathname.endswith("py4j/java_gateway.py"))
# On Ctrl-C, py4j calls this method of a connection, which only its other kind of connection has. An AttributeError
# would hide the KeyboardInterrupt.
GatewayConnection.shutdown_socket = lambda connection, *_: connection.close()


def session(master: str = "local[2]", *, records: int = 0) -> SparkSession:
    """Return the session of this process. The first call starts it; later calls return it and ignore `master`.

    `records` is how many are going to be read or judged. A JVM that was started for few of them (`spark_jvm.FEW`) is
    replaced by one that compiles for many; no frame of the session may be in use then.

    Raises BadInput for a master that is none or refuses connections, and HarnessError when the JVM does not come up, or
    the master does not answer within 90 s.
    """
    with _lock:
        few = records <= spark_jvm.FEW
        if _started and (not lives(_started[0]) or (not few and _few[0])):  # speed
            _end()  # its JVM or its context has ended, or compiles for few records, so a new session is started
        if _started:
            return _started[0]
        masters.check(master)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else Spark takes the first python3 on PATH
        os.environ.setdefault("PYSPARK_PIN_THREAD", "false")  # else each thread leaves a connection open when it ends
        spark_jvm.encode_as_python_does()
        atexit.register(_end_at_exit)
        settings = spark_settings.settings(master, few=few)
        conf = SparkConf().setMaster(master).setAppName("onceproof").setAll(list(settings.items()))
        # We launch the JVM ourselves, so that its start-up messages do not mix with the progress on stderr.
        with spark_settings.address_in_environment(settings):
            gateway: Any = launch_gateway(conf=conf, popen_kwargs=spark_jvm.process())  # type: ignore[no-untyped-call]
        _gateways.append(gateway)
        _few[:] = [few]
        with _in_time(gateway, f"Spark did not start with the master {master}"), _our_signals():
            _remember(gateway.jvm)
            context = SparkContext(conf=conf, gateway=gateway)
            if not masters.one_process(master):
                executors.wait(context, master)
            _started.append(SparkSession(context))
            if not masters.one_process(master):
                executors.check_version(_started[0], master)
                adapt(_started[0], rows=0, few=few)
        return _started[0]


@contextmanager
def _in_time(gateway: Any, says: str) -> Iterator[None]:
    """End Spark's process when the block takes longer than 90 s, or raises an error.

    Raises HarnessError with `says` and the reason.
    """
    timer = threading.Timer(_START_DEADLINE_S, gateway.proc.kill)
    timer.daemon = True
    timer.start()
    began = time.monotonic()
    try:
        yield
    except Exception as error:
        late = time.monotonic() - began >= _START_DEADLINE_S
        why = f"it did not answer within {_START_DEADLINE_S:g} s" if late else in_a_line(error)
        gateway.proc.kill()
        _end()
        if isinstance(error, HarnessError):  # it says already what is wrong
            raise
        raise HarnessError(f"{says}: {why}") from error
    finally:
        timer.cancel()


@contextmanager
def _our_signals() -> Iterator[None]:
    """Keep the handler of SIGINT, which SparkContext replaces by its own when the main thread makes it."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


def kill() -> None:
    """Kill Spark's process, if there is one, so that every query that waits for it fails at once."""
    for gateway in _gateways:
        gateway.proc.kill()


@contextmanager
def killed_when_interrupted() -> Iterator[None]:
    """Kill Spark's process when the block is left by Ctrl-C or a signal, so that no thread waits for a query."""
    try:
        yield
    except Exception:
        raise
    except BaseException:
        kill()
        raise


def _remember(jvm: Any) -> None:
    """Cache what PySpark looks up in the JVM by name at each use, some hundred times for a verdict.

    The JVM searches all of its jars for some of these names.
    """
    for name in ("functions", "PythonUtils", "PythonSQLUtils"):
        setattr(jvm, name, getattr(jvm, name))
    for name in ("sql.functions", "sql.classic.SparkSession", "storage.StorageLevel", "sql.expressions.Window"):
        setattr(jvm, f"org.apache.spark.{name}", getattr(jvm, f"org.apache.spark.{name}"))
    for name in ("col", "expr", "lit"):
        setattr(jvm.functions, name, getattr(jvm.functions, name))
    jvm.PythonUtils.toSeq = jvm.PythonUtils.toSeq


def lives(spark: SparkSession) -> bool:
    """Return whether the JVM is alive and its context accepts jobs; it may not be after an OutOfMemoryError."""
    context: Any = spark.sparkContext
    with suppress(Exception):
        return bool(_gateways[0].proc.poll() is None and not context._jsc.sc().isStopped())
    return False


def warm_up(master: str = "local[2]", *, records: int = 0) -> None:
    """Start the session for so many records, and load the code of collect and verify by operations on a small table.

    Executors that run elsewhere are only started, since they do not share the folder of that table. Raises whatever
    `session` raises.
    """
    spark = session(master, records=records)
    if _warm or masters.elsewhere(master):
        return
    _warm.append(True)
    with tempfile.TemporaryDirectory(dir=spark_jvm.folder()) as folder:
        rows = spark.range(1000).selectExpr(
            "cast(id % 3 AS int) AS partition",
            "id AS offset",
            "xxhash64(cast(cast(id AS string) AS binary)) AS digest",
            "id div 10L % 10L AS told",
        )
        rows.write.parquet(f"{folder}/rows")
        read = spark.read.schema(rows.schema).parquet(f"{folder}/rows")
        read.unionAll(read).groupBy("offset").agg({"digest": "max", "told": "max"}).where("offset < 0").count()


def adapt(spark: SparkSession, *, rows: int, few: bool) -> None:
    """Adapt the session to the run that is read or judged next; it has what the run before it needed.

    `rows` is the most that a query exchanges. It is divided into tasks, of which the hash table of each has
    `_ROWS_OF_A_TASK` or fewer: Spark cannot write a hash table to disk, and the query fails if it does not fit into the
    memory of its task. There are two tasks at least, and on a cluster one for each core.

    `few` is whether the run has few records. Then starting a task and compiling a stage of a query to Java take longer
    than its rows, so nothing is compiled, and in one process there may be a single task, since checks run at the same
    time, and one that reads small files.
    """
    here = in_one_process(spark)
    cores = (1 if few else 2) if here else max(2, spark.sparkContext.defaultParallelism)
    spark.conf.set("spark.sql.shuffle.partitions", max(cores, -(-rows // _ROWS_OF_A_TASK)))
    if here:  # a cluster's own setting stays
        spark.conf.set("spark.sql.leafNodeDefaultParallelism", 1 if few else spark.sparkContext.defaultParallelism)
    spark.conf.set("spark.sql.codegen.wholeStage", not few)


def in_one_process(spark: SparkSession) -> bool:
    """Return whether the session's executors are in the process of its driver."""
    return masters.one_process(str(spark.sparkContext.master))


def let_go(spark: SparkSession) -> None:
    """Free the memory that a verdict took in the JVM.

    PySpark's frames contain reference cycles. Until Python's garbage collector removes them, which seldom happens, the
    JVM keeps each frame with its plan.
    """
    spark.catalog.clearCache()
    context: Any = spark.sparkContext
    for kept in context._jsc.getPersistentRDDs().values():  # the checkpoints that `Tables.gathered` made
        kept.unpersist()
    gc.collect()


def _end_at_exit() -> None:
    """Kill the JVM, which would end by itself, but only after this process; and remove its temporary files."""
    kill()
    for gateway in _gateways:
        with suppress(subprocess.TimeoutExpired):
            gateway.proc.wait(_STOP_DEADLINE_S)
    spark_jvm.remove_folder()


def stop() -> None:
    """Stop the session and its JVM, if there is one."""
    with _lock:
        _end()


def _end() -> None:
    """Stop the session and the JVM, as far as they were started, whether the JVM is still alive or not."""
    spark = _started.pop() if _started else None
    while _gateways:
        gateway = _gateways.pop()
        if gateway.proc.poll() is None:
            with suppress(Exception):  # a JVM that is dying need not answer
                if spark is not None:
                    spark.stop()
                gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM exits when its stdin is closed
        try:
            gateway.proc.wait(_STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()
            gateway.proc.wait(_STOP_DEADLINE_S)
    spark_jvm.remove_folder()
    atexit.unregister(_end_at_exit)
    _warm.clear()
    # PySpark's own references, which it also keeps for a session whose JVM has died.
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = None
