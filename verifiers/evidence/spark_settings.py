"""The settings of the Spark session, which depend on where its executors run.

    local[2]                   in the JVM of the driver
    spark://10.213.0.2:7077    elsewhere: they fetch the jars from the driver, and connect to its address

What a cluster needs besides (memory of executors, an image for Kubernetes, the keys of an object store) comes from
`spark-defaults.conf` in the folder `SPARK_CONF_DIR`, as for any other driver. Where executors run elsewhere, the
driver's address is `SPARK_LOCAL_IP`, or else the address of this machine from which the master is reached.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from onceproof.harness.artifacts import jars
from onceproof.verifiers.collect import sources
from onceproof.verifiers.evidence import master as masters
from onceproof.verifiers.evidence import spark_jvm

_MEMORY = "768m"
_LOOPBACK = "127.0.0.1"
_VARIABLE, _ADDRESS = "SPARK_LOCAL_IP", "spark.driver.host"


def settings(master: str, *, few: bool = True) -> dict[str, str]:
    """Return the settings of a session with this master. `few` is as for `spark_jvm.options`.

    Raises HarnessError when jars are missing and cannot be made.
    """
    return {**_everywhere(few), **_addresses(master)}


def own_address(master: str) -> str:
    """Return the address at which executors reach the driver; empty if Spark is to choose it."""
    given = os.environ.get(_VARIABLE)
    return given or (masters.address_towards(master) if masters.elsewhere(master) else _LOOPBACK)


@contextmanager
def address_in_environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Set `SPARK_LOCAL_IP`, unless the user has, for a JVM that is started in the block.

    Later sessions may have another address.
    """
    address = "" if os.environ.get(_VARIABLE) else settings.get(_ADDRESS, "")
    if not address:
        yield
        return
    os.environ[_VARIABLE] = address
    try:
        yield
    finally:
        del os.environ[_VARIABLE]


def _addresses(master: str) -> dict[str, str]:
    address = own_address(master) if masters.elsewhere(master) else _LOOPBACK
    return {_ADDRESS: address, "spark.driver.bindAddress": address} if address else {}


def _everywhere(few: bool) -> dict[str, str]:
    return {
        "spark.jars": ",".join(map(str, [*sources.jars(), *jars.jdbc()])),
        "spark.driver.memory": _MEMORY,
        "spark.driver.extraJavaOptions": spark_jvm.options(few=few),
        "spark.local.dir": str(spark_jvm.folder()),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark keeps each query with its plan for its user interface, even if the user interface is disabled; a session
        # that gives many verdicts would fill the heap.
        "spark.sql.ui.retainedExecutions": "1",
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        "spark.ui.retainedTasks": "200",
        "spark.executor.heartbeatInterval": "2s",  # how far tasks are is known from heartbeats (`reading`)
        "spark.sql.shuffle.partitions": "2",
        "spark.buffer.pageSize": "1m",  # else 4 to 16 MiB for each hash table, however small, until the JVM collects it
        "spark.sql.codegen.wholeStage": str(not few).lower(),  # and `spark.adapt` for each run
        "spark.sql.codegen.cache.maxEntries": "1000",  # a verdict compiles 200 to 300 classes; the next one reuses them
        "spark.sql.session.timeZone": "UTC",
        "spark.python.sql.dataFrameDebugging.enabled": "false",  # else each call makes three more calls to the JVM
        "spark.sql.adaptive.enabled": "false",
        # Our tables have no partitioned columns, and too few bytes for a filter at run time. Looking for places where
        # these two would help took a seventh of the time of a small verdict.
        "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
        "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
        # With the defaults of these two, Spark clones its session for each frame that is persisted. It never frees the
        # clones, which take some 2 MiB for each verdict.
        "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
        "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
        # Clusters may set these two; a table whose file is missing or damaged would be taken for a smaller one.
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.limit.initialNumPartitions": "64",  # isEmpty() takes one job instead of several
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",  # lists a ledger of many files without a job
    }
