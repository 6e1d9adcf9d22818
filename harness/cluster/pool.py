"""Leases clusters to runs. A cluster can be kept and reused by a later run with an equal `[cluster]` table.

A file lock gives a cluster to one run at a time; the operating system releases the lock when the run's process ends for
any reason. A kept cluster is checked before each run; one that is not healthy is removed and replaced.

    ~/.cache/onceproof/clusters/<name>/   cluster.json  cluster.env  run_number  processes.jsonl  data/
    ~/.cache/onceproof/clusters/<name>.lock
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import docker
import psutil
from filelock import FileLock, Timeout

from onceproof.harness.base import paths
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.cluster import containers, disks, leftovers, spark_master
from onceproof.harness.cluster.addresses import Address, free_address, lock_file
from onceproof.harness.cluster.cluster import Cluster
from onceproof.harness.model.spec import ClusterSpec

Say = Callable[[str], None]
_OTHERS_DEADLINE_S = 600.0


@contextmanager
def lease(spec: ClusterSpec, *, keep: bool, say: Say = lambda _: None) -> Iterator[Cluster]:
    """Lease a healthy cluster for one run: a kept cluster that fits and is free, otherwise a new one.

    With `keep`, the cluster stays up for the next run unless it is used up, has settings that may be secrets, or an
    exception left it unhealthy. Without `keep`, it is always removed. Raises HarnessError or DeadlineError when no
    cluster can be started.
    """
    cluster, lock = _take(spec, say)
    try:
        yield cluster
    except BaseException:
        keep = keep and cluster.healthy()
        raise
    finally:
        if keep and spec.has_secrets:
            say(f"cluster {cluster.address.name} is not kept, because it has settings that may be secrets")
        keep = keep and not cluster.used_up and not spec.has_secrets
        try:
            if not keep:
                say(f"removing cluster {cluster.address.name}")
                cluster.down()
        finally:
            _give_back(lock, keep=keep)


class Clusters:
    """The clusters of a session of several runs: one for each distinct spec, until `close` ends all leases.

    `say` is called with a line for each cluster that is started, used again, removed or, against `keep`, not kept.
    """

    def __init__(self, *, keep: bool, say: Say = lambda _: None) -> None:
        self._keep, self._say = keep, say
        self._held: dict[str, tuple[Cluster, ExitStack]] = {}

    def get(self, spec: ClusterSpec) -> Cluster:
        """Return the session's cluster for a spec; an unhealthy cluster is replaced."""
        key = spec.model_dump_json()
        if key in self._held and not self._held[key][0].healthy():
            self._held[key][0].down()
            self._end_lease(key)
        if key not in self._held:
            lease_stack = ExitStack()
            self._held[key] = lease_stack.enter_context(lease(spec, keep=self._keep, say=self._say)), lease_stack
        return self._held[key][0]

    def keep_only(self, specs: Iterable[ClusterSpec]) -> None:
        """End the leases of all clusters but those for these specs."""
        with ExitStack() as leases:  # ends the other leases even if one of them raises
            for key in set(self._held) - {spec.model_dump_json() for spec in specs}:
                leases.callback(self._end_lease, key)

    def close(self) -> None:
        """End all leases."""
        self.keep_only(())

    def _end_lease(self, key: str) -> None:
        _, lease_stack = self._held.pop(key)
        lease_stack.close()


def next_run_number(cluster: Cluster) -> int:
    """Return the number of the next run on a cluster, from 1; topic and transactional id names contain it."""
    path = cluster.folder / "run_number"
    number = int(path.read_text()) + 1 if path.exists() else 1
    path.write_text(str(number))
    return number


def record_process(folder: Path, pid: int, role: str) -> None:
    """Record a child process with its start time, so that `clean` does not kill a later process of the same pid."""
    try:
        created = psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return
    with (folder / "processes.jsonl").open("a") as file:
        file.write(json.dumps({"pid": pid, "created": created, "role": role}) + "\n")


def clean(say: Say, *, dry_run: bool = False) -> int:
    """Remove what killed runs and kept clusters left: files, processes, containers, networks, and clusters' folders.

    Clusters that a running process uses are left alone, and so is every container without the labels of this
    `ONCEPROOF_HOME`. With `dry_run`, only say what would be removed. Returns how much was removed. Raises HarnessError
    when the Docker engine does not answer; what needs no engine has then been removed.
    """
    removed = leftovers.remove(say, dry_run=dry_run)
    try:
        client = docker.from_env(timeout=40)
    except docker.errors.DockerException as error:
        raise HarnessError(f"the Docker engine does not answer, so no container is removed: {error}") from None
    try:
        for name in sorted(_known() | _labelled(client)):
            with leftovers.unless_held(lease_file(name)) as free:
                if not free or _judging(name, client):
                    say(f"{name}: in use by a running process, not removed")
                elif dry_run:
                    say(f"would remove the cluster {name} with its processes, containers and networks")
                    removed += 1
                else:
                    removed += remove(name, client, say)
    finally:
        client.close()
    return removed


def remove(name: str, client: docker.DockerClient, say: Say = lambda _: None) -> int:
    """Remove a cluster that no other process uses.

    Returns the number of its processes, containers, networks and folders.
    """
    folder = paths.clusters_dir() / name
    count, folders = _kill_processes(folder) + containers.remove(name, client), int(folder.exists())
    disks.remove(folder)
    lease_file(name).unlink(missing_ok=True)
    say(f"{name}: removed, {count} processes, containers and networks")
    return count + folders


def lease_file(name: str) -> Path:
    """Return the lock that is held while a process uses a cluster."""
    return paths.clusters_dir() / f"{name}.lock"


def in_use() -> list[str]:
    """Return the names of the clusters that running processes use."""
    found = []
    with closing(docker.from_env(timeout=40)) as client:
        for name in sorted(_known()):
            with leftovers.unless_held(lease_file(name)) as free:
                if not free or _judging(name, client):
                    found.append(name)
    return found


def _judging(name: str, client: docker.DockerClient) -> bool:
    """Return whether a process has executors there. Nobody leases a Spark cluster, since several may use it."""
    return spark_master.used(client.containers.list(filters={"label": f"{containers.LABEL}={name}"}))


def _known() -> set[str]:
    clusters = paths.clusters_dir()
    return {path.name for path in clusters.iterdir() if path.is_dir()} if clusters.is_dir() else set()


def _labelled(client: docker.DockerClient) -> set[str]:
    """Return the clusters of this home that have containers or networks, even if their folder is missing."""
    mine: dict[str, Any] = {"label": [containers.LABEL, f"{containers.HOME_LABEL}={paths.home()}"]}
    found = {each.labels[containers.LABEL] for each in client.containers.list(all=True, filters=mine)}
    return found | {each.attrs["Labels"][containers.LABEL] for each in client.networks.list(filters=mine)}


def _take(spec: ClusterSpec, say: Say) -> tuple[Cluster, FileLock]:
    for name in sorted(_known()):
        lock = FileLock(lease_file(name), thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            continue
        kept = _reopen(name, spec)
        if kept is None:
            lock.release()
            continue
        if kept.healthy():
            say(f"using the kept cluster {name}")
            return kept, lock
        say(f"removing the kept cluster {name}, which is not healthy")
        _kill_processes(kept.folder)
        try:
            kept.down()
        finally:
            lock.release()
    return _make(spec, say)


def _reopen(name: str, spec: ClusterSpec) -> Cluster | None:
    try:
        stored = json.loads((paths.clusters_dir() / name / "cluster.json").read_text())
        if spec.has_secrets or ClusterSpec.model_validate(stored["spec"]) != spec:
            return None
        return Cluster(spec, Address(**stored["address"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _make(spec: ClusterSpec, say: Say) -> tuple[Cluster, FileLock]:
    paths.made(paths.clusters_dir())
    with FileLock(lock_file(), timeout=_OTHERS_DEADLINE_S):  # one cluster starts at a time
        address = free_address()
        lock = FileLock(lease_file(address.name), thread_local=False)
        lock.acquire(timeout=0)
        cluster = Cluster(spec, address)
        say(f"starting cluster {address.name}, {spec.system} {spec.version}, ports {address.ports}00 and up")
        try:
            cluster.write_files()
            cluster.up()
        except BaseException:
            try:
                cluster.down()
            finally:
                _give_back(lock, keep=False)
            raise
    return cluster, lock


def _give_back(lock: FileLock, *, keep: bool) -> None:
    lock.release()
    if not keep:
        Path(lock.lock_file).unlink(missing_ok=True)


def _kill_processes(folder: Path) -> int:
    path = folder / "processes.jsonl"
    killed = 0
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            entry = json.loads(line)
            process = psutil.Process(entry["pid"])
            if abs(process.create_time() - entry["created"]) < 1:
                process.kill()
                killed += 1
        except (psutil.NoSuchProcess, ValueError, KeyError):
            continue
    return killed
