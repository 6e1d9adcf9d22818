"""A Spark standalone cluster in containers (compose/spark.yaml): executors that share no process with the driver.

    with started(2, share=runs) as master:                        spark://10.213.0.2:7077
        verify(run, master=master)

    with reaching(master, cluster) as bootstrap:                  toxiproxy:29301,…
        …                                                         its executors read topics of the Kafka cluster

Executors read and write folders at the path that these have on this machine, so what they share is mounted there, and
so are the logs of the Kafka clusters that onceproof starts.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from onceproof.harness.artifacts import images, jars
from onceproof.harness.base import host, paths
from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.cluster import addresses, composed, containers, pool, spark_master, topology
from onceproof.harness.cluster.cluster import Cluster
from onceproof.harness.cluster.containers import engine
from onceproof.harness.cluster.spark_master import LABEL

_KIND = "onceproof-spark"
_PORT = 7077
_WORKER = "worker"
_SERVICE_LABEL = "com.docker.compose.service"
_OTHERS_DEADLINE_S = 300.0
_UP_DEADLINE_S = 60.0
_BESIDES_MB = 1_024  # the worker's own JVM, and what an executor takes besides its heap


@contextmanager
def started(workers: int, *, share: Path, memory: str = "1g") -> Iterator[str]:
    """Run a cluster of `workers` workers of one core each during the block, and yield the URL of its master.

    Raises as `start` does.
    """
    master = start(workers, share=share, memory=memory)
    try:
        yield master
    finally:
        stop(master)


def start(workers: int, *, share: Path, memory: str = "1g") -> str:
    """Start a cluster of `workers` workers of one core each, and return the URL of its master once all are registered.

    Their executors can read and write below `share`; `memory` is what a worker offers to them. Raises HarnessError when
    Compose fails, and DeadlineError when a worker has not registered within 60 s.
    """
    paths.made(paths.clusters_dir())
    with FileLock(addresses.lock_file(), timeout=_OTHERS_DEADLINE_S):  # one cluster starts at a time
        address = addresses.free_address(_KIND)
        master, folder = f"spark://{address.subnet}.2:{_PORT}", paths.clusters_dir() / address.name
        data = folder / "data"
        data.mkdir(mode=0o700, parents=True)
        variables = {
            "ONCEPROOF_NAME": address.name,
            "ONCEPROOF_HOME_LABEL": str(paths.home()),
            "ONCEPROOF_JRE_IMAGE": images.BASE_IMAGE,
            "ONCEPROOF_USER": host.container_user(engine().info()),
            "ONCEPROOF_SUBNET": address.subnet,
            "ONCEPROOF_DATA": str(data),
            "ONCEPROOF_SPARK_HOME": str(jars.pyspark()),
            "ONCEPROOF_SPARK_MASTER": master,
            "ONCEPROOF_SPARK_MEMORY": memory,
            "ONCEPROOF_SPARK_LIMIT": f"{_megabytes(memory) + _BESIDES_MB}m",
            "ONCEPROOF_SHARE": str(share.resolve()),
            "ONCEPROOF_CLUSTERS": str(paths.clusters_dir()),
        }
        environment = composed.write_environment(folder, variables)
        try:
            composed.up(paths.compose_dir() / "spark.yaml", environment, "--scale", f"{_WORKER}={workers}")
            until(
                f"{workers} registered Spark workers",
                lambda: spark_master.workers(master) == workers,
                deadline_s=_UP_DEADLINE_S,
            )
        except BaseException:
            pool.remove(address.name, engine())
            raise
    return master


def stop(master: str) -> None:
    """Remove the containers of the cluster with this master, its network and its files."""
    for name in {each.labels[containers.LABEL] for each in containers_of(master)}:
        pool.remove(name, engine())


def masters() -> list[str]:
    """Return the URLs of the masters of the clusters that run, those of this `ONCEPROOF_HOME` only."""
    mine: dict[str, Any] = {"label": [LABEL, f"{containers.HOME_LABEL}={paths.home()}"]}
    return sorted({each.labels[LABEL] for each in engine().containers.list(filters=mine)})


@contextmanager
def reaching(master: str, cluster: Cluster) -> Iterator[str]:
    """Yield the `bootstrap.servers` for tasks of this master's executors, which reach the brokers during the block.

    Executors in containers of `start` join the network of the cluster's applications; at most one cluster at a time,
    since its names are those of every such network. All others reach the brokers as this machine does.

    Raises HarnessError when another process still uses the executors after five minutes.
    """
    workers = [each for each in containers_of(master) if each.labels[_SERVICE_LABEL] == _WORKER]
    if not workers:
        yield cluster.bootstrap(topology.OBSERVER_LANE)
        return
    name = workers[0].labels[containers.LABEL]
    try:
        with FileLock(pool.lease_file(name), timeout=_OTHERS_DEADLINE_S):
            network = engine().networks.get(cluster.apps_network)
            for worker in workers:
                _leave_all_but_own(worker, name)
                network.connect(worker)
            try:
                yield topology.APP_BOOTSTRAP
            finally:
                for worker in workers:
                    network.disconnect(worker, force=True)
    except Timeout:
        raise HarnessError(
            f"waited {_OTHERS_DEADLINE_S:g} s for the executors of {master}: another process reads topics with them"
        ) from None


def _leave_all_but_own(worker: Any, name: str) -> None:
    """Disconnect a worker from the networks in which a killed process left it."""
    for network in worker.attrs["NetworkSettings"]["Networks"]:
        if not network.startswith(f"{name}_"):
            engine().networks.get(network).disconnect(worker, force=True)


def containers_of(master: str) -> list[Any]:
    """Return the containers of the cluster with this master; none if it is no cluster of `start`."""
    if not master.startswith("spark://"):
        return []
    found: list[Any] = engine().containers.list(all=True, filters={"label": f"{LABEL}={master}"})
    return found


def _megabytes(memory: str) -> int:
    """Return an amount such as 512m or 2g in megabytes."""
    return int(memory[:-1]) * (1_024 if memory.endswith("g") else 1)
