"""Clusters that are kept and used again by the next run that needs the same one.

A cluster is kept with its key (system, version, brokers, features, settings). One run at a time has it: a file lock,
which the system releases when the run's process dies, whatever kills it. A health check stands between runs; a
cluster that fails it is taken down and another is made.

    ~/.cache/onceproof/clusters/<name>/   cluster.json  cluster.env  run_number  processes.jsonl  data/
    ~/.cache/onceproof/clusters/<name>.lock
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import docker
import psutil
from filelock import FileLock, Timeout

from onceproof.harness.base import paths
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.cluster import containers
from onceproof.harness.cluster.addresses import Address, free_address
from onceproof.harness.cluster.cluster import Cluster
from onceproof.harness.model.spec import ClusterSpec

Say = Callable[[str], None]
_OTHERS_DEADLINE_S = 600.0


@contextmanager
def lease(spec: ClusterSpec, *, keep: bool, say: Say = lambda _: None) -> Iterator[Cluster]:
    """A healthy cluster for one run: a kept one when it fits and is free, else a new one.

    With `keep` it stays up for the next; without, it is taken down, whatever happened.
    """
    cluster, lock = _take(spec, say)
    try:
        yield cluster
    except BaseException:
        keep = keep and cluster.healthy()
        raise
    finally:
        keep = keep and not cluster.used_up
        if not keep:
            say(f"taking cluster {cluster.address.name} down")
            cluster.down()
        lock.release()
        if not keep:
            Path(lock.lock_file).unlink(missing_ok=True)


class Clusters:
    """The clusters of a session: one for each spec that is asked for, all given back at the end."""

    def __init__(self, *, keep: bool) -> None:
        self._keep = keep
        self._held: dict[str, tuple[Cluster, ExitStack]] = {}

    def get(self, spec: ClusterSpec) -> Cluster:
        """The session's cluster of this kind, healthy; one that is not is replaced."""
        key = spec.model_dump_json()
        if key in self._held and not self._held[key][0].healthy():
            self._held[key][0].down()
            self._give_back(key)
        if key not in self._held:
            lent = ExitStack()
            self._held[key] = lent.enter_context(lease(spec, keep=self._keep)), lent
        return self._held[key][0]

    def keep_only(self, specs: Iterable[ClusterSpec]) -> None:
        """Give back those that are none of these."""
        with ExitStack() as all_of_them:  # also when one of them cannot be taken down
            for key in set(self._held) - {spec.model_dump_json() for spec in specs}:
                all_of_them.callback(self._give_back, key)

    def close(self) -> None:
        self.keep_only(())

    def _give_back(self, key: str) -> None:
        _, lent = self._held.pop(key)
        lent.close()


def next_run_number(cluster: Cluster) -> int:
    """Topics and ids are new for each run on a cluster; this counts them."""
    path = cluster.folder / "run_number"
    number = int(path.read_text()) + 1 if path.exists() else 1
    path.write_text(str(number))
    return number


def record_process(folder: Path, pid: int, role: str) -> None:
    """Remember a child with its start time, so that `clean` can tell it from a later process with its number."""
    try:
        created = psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return
    with (folder / "processes.jsonl").open("a") as file:
        file.write(json.dumps({"pid": pid, "created": created, "role": role}) + "\n")


def clean(say: Say) -> int:
    """Remove what killed runs and kept clusters left: processes, containers, networks, folders.

    Clusters that a living run holds are left alone. Containers of others are told by label and never touched.
    Returns how many things were removed.
    """
    removed = 0
    try:
        client = docker.from_env(timeout=40)
    except docker.errors.DockerException as error:
        raise HarnessError(f"the Docker engine does not answer, so nothing can be removed: {error}") from None
    try:
        held: set[str] = set()
        for name in sorted(_known() | _labelled(client)):
            lock = FileLock(paths.clusters_dir() / f"{name}.lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                say(f"{name}: in use by a living run, left alone")
                held.add(name)
                continue
            count = _kill_processes(paths.clusters_dir() / name) + containers.remove(name, client)
            shutil.rmtree(paths.clusters_dir() / name, ignore_errors=True)
            lock.release()
            Path(lock.lock_file).unlink(missing_ok=True)
            say(f"{name}: removed, {count} processes, containers and networks")
            removed += count
    finally:
        client.close()
    return removed


def _known() -> set[str]:
    paths.clusters_dir().mkdir(parents=True, exist_ok=True)
    return {path.name for path in paths.clusters_dir().iterdir() if path.is_dir()}


def _labelled(client: docker.DockerClient) -> set[str]:
    """Clusters of this home that have containers or networks but, after an accident, no folder any more."""
    mine: dict[str, Any] = {"label": [containers.LABEL, f"{containers.HOME_LABEL}={paths.home()}"]}
    found = {each.labels[containers.LABEL] for each in client.containers.list(all=True, filters=mine)}
    return found | {each.attrs["Labels"][containers.LABEL] for each in client.networks.list(filters=mine)}


def _take(spec: ClusterSpec, say: Say) -> tuple[Cluster, FileLock]:
    for name in sorted(_known()):
        lock = FileLock(paths.clusters_dir() / f"{name}.lock", thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            continue
        kept = _reopen(name, spec)
        if kept is None:
            lock.release()
            continue
        if kept.healthy():
            say(f"using cluster {name}, which was kept")
            return kept, lock
        say(f"cluster {name} was kept but is not healthy: taking it down")
        _kill_processes(kept.folder)
        kept.down()
        lock.release()
    return _make(spec, say)


def _reopen(name: str, spec: ClusterSpec) -> Cluster | None:
    try:
        stored = json.loads((paths.clusters_dir() / name / "cluster.json").read_text())
        if ClusterSpec.model_validate(stored["spec"]) != spec:
            return None
        return Cluster(spec, Address(**stored["address"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _make(spec: ClusterSpec, say: Say) -> tuple[Cluster, FileLock]:
    paths.clusters_dir().mkdir(parents=True, exist_ok=True)
    with FileLock(paths.clusters_dir() / ".addresses.lock", timeout=_OTHERS_DEADLINE_S):  # one starts at a time
        address = free_address()
        lock = FileLock(paths.clusters_dir() / f"{address.name}.lock", thread_local=False)
        lock.acquire(timeout=0)
        cluster = Cluster(spec, address)
        say(f"starting cluster {address.name}, {spec.system} {spec.version}, ports {address.ports}00 and up")
        try:
            cluster.write_files()
            cluster.up()
        except BaseException:
            cluster.down()
            lock.release()
            Path(lock.lock_file).unlink(missing_ok=True)
            raise
    return cluster, lock


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
