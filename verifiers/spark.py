"""The Spark session: one a process, started once, with the Kafka source that belongs to this PySpark.

    spark = session()                                  local[2], 2 GiB
    spark = session("spark://host:7077")               a Spark cluster, the same plans
"""

import os
import subprocess
import threading

import pyspark
from pyspark.conf import SparkConf
from pyspark.context import SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from harness import jars

_MEMORY = "2g"
_lock = threading.Lock()
_started: list[SparkSession] = []  # at most one; Spark's own idea of an active session is one a thread


def session(master: str = "local[2]") -> SparkSession:
    """The process's session; it is started by the first call. Later calls get it whatever `master` they name.

    Raises whatever PySpark raises when the JVM does not come up or the master does not answer.
    """
    with _lock:
        if _started:
            return _started[0]
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        conf = SparkConf().setMaster(master).setAppName("onceproof").setAll(_settings().items())
        # A JVM of our own launching, since its start-up chatter must not mix with the progress on stderr.
        gateway = launch_gateway(conf=conf, popen_kwargs={"stderr": subprocess.DEVNULL})
        _started.append(SparkSession(SparkContext(conf=conf, gateway=gateway)))
        return _started[0]


def _settings() -> dict[str, str]:
    libs = sorted(jars.spark_kafka(pyspark.__version__).glob("*.jar"))
    return {
        "spark.jars": ",".join(str(jar) for jar in libs),
        "spark.driver.memory": _MEMORY,
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "false",
    }


def stop() -> None:
    """End the session and its JVM, if there is one."""
    with _lock:
        if _started:
            _started.pop().stop()
