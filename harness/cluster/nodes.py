"""The nodes of a cluster: stop, start, freeze and replace their containers, take their disks, and save their logs."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import docker

from onceproof.harness.base import paths
from onceproof.harness.base.deadlines import until
from onceproof.harness.base.redaction import Redaction
from onceproof.harness.cluster import composed, disks, topology
from onceproof.harness.cluster.addresses import Address
from onceproof.harness.cluster.containers import already
from onceproof.harness.cluster.exits import Exit, Exits, Planned
from onceproof.harness.model import registry
from onceproof.harness.model.spec import ClusterSpec

_FREEZE_DEADLINE_S = 15
_STOP_DEADLINE_S = 30
_LOGS_AT_ONCE = 8


class Nodes:
    """The containers of a cluster, one for each node.

    `nodes` has the nodes on which faults can act, with `database` while there is one. `used_up` is true once a node
    runs another release, so the cluster cannot be used for another run.
    """

    def __init__(self, spec: ClusterSpec, address: Address) -> None:
        self.spec = spec
        self.system = registry.system(spec.system)
        self.address = address
        self.folder = paths.clusters_dir() / address.name
        self.nodes: tuple[str, ...] = topology.NODES
        self.used_up = False
        self._docker = docker.from_env(timeout=_STOP_DEADLINE_S + 10)
        self._replaced: dict[str, bytes] = {}
        self._planned = Planned()

    def log_dirs(self) -> dict[str, Path]:
        """Return each broker's log directory as a folder of this machine, by node name."""
        return {f"broker{n}": self.folder / "data" / f"broker{n}" / "log" for n in topology.BROKERS}

    def kill(self, node: str) -> None:
        """Kill the node's process with SIGKILL, and wait until it has ended. Killing a stopped node has no effect.

        Raises DeadlineError after 30 seconds.
        """
        with self._planned.down(node):
            # On a busy machine the engine calls a process a zombie that it has killed and not reaped yet.
            with already("is not running"), already("is zombie"):
                self._container(node).kill(signal="SIGKILL")
            until(f"{node} to end", lambda: self.state(node) != "running", deadline_s=_STOP_DEADLINE_S)

    def stop(self, node: str) -> None:
        """Stop the node with SIGTERM and wait for its controlled shutdown; send SIGKILL after 30 seconds."""
        with self._planned.down(node):
            self._container(node).stop(timeout=_STOP_DEADLINE_S)

    def start(self, node: str) -> None:
        """Start a stopped node's container; return before the node is registered."""
        self._container(node).start()
        self._planned.end(node)

    def watch_exits(self, on_exit: Callable[[Exit], None], on_blind: Callable[[str], None]) -> Exits:
        """Return a watch that calls `on_exit` when a container exits that none of these methods stopped.

        It calls `on_blind` with the reason if it cannot watch any more.
        """
        return Exits(self._docker, self.address.name, self._planned, on_exit, on_blind)

    def pause(self, node: str) -> None:
        """Freeze the node's processes (cgroup freezer): it answers nothing, and its connections stay open.

        On a busy machine the kernel may not freeze all of them in time; then this is tried again. Raises DeadlineError
        after 15 seconds.
        """

        def frozen() -> bool:
            with already("already paused"):
                self._container(node).pause()
            return True

        until(f"{node} to be frozen", frozen, deadline_s=_FREEZE_DEADLINE_S)

    def resume(self, node: str) -> None:
        """Resume a frozen node. Resuming a running node has no effect."""
        with already("is not paused"):
            self._container(node).unpause()

    def take_log_directory(self, broker: str) -> None:
        """Rename a running broker's log directory, so that it shuts down at its next checkpoint."""
        with self._planned.down(broker):
            self._log_directory(broker, lost=False).rename(self._log_directory(broker, lost=True))

    def give_log_directories_back(self) -> None:
        """Rename all log directories that were taken away back. This call is idempotent."""
        for broker in self.log_dirs():
            if (lost := self._log_directory(broker, lost=True)).exists():
                lost.rename(self._log_directory(broker, lost=False))

    def _log_directory(self, broker: str, *, lost: bool) -> Path:
        folder = self.log_dirs()[broker]
        return folder.with_name(f"{folder.name}.lost") if lost else folder

    def fill_disk(self, broker: str) -> int:
        """Fill the file system of a broker's own, so that it shuts down; return how many bytes that took."""
        with self._planned.down(broker):
            return disks.fill(self.folder / "data" / broker)

    def make_room(self) -> None:
        """Give back what `fill_disk` has taken. This call is idempotent."""
        for broker in self.log_dirs():
            disks.make_room(self.folder / "data" / broker)

    def replace(self, node: str, version: str) -> None:
        """Stop a node and start it with another release on its own data; the cluster is then used up."""
        self.used_up = True
        self.stop(node)
        self._replaced[node] = self._replaced.get(node, b"") + self._container(node).logs(timestamps=False)
        with (self.folder / composed.ENVIRONMENT).open("a") as environment:
            environment.write(f"ONCEPROOF_{node.upper()}_IMAGE={self.system.image(version)}\n")
        composed.start(self.system, self.folder, node)
        self._planned.end(node)

    def image(self, node: str) -> str:
        """Return the image of the node's container, as Docker reports it."""
        return str(self._container(node).attrs["Config"]["Image"])

    def state(self, node: str) -> str:
        """Return the state of the node's container, as Docker reports it: running, paused, exited, …."""
        return str(self._container(node).status)

    def exit_code(self, node: str) -> int:
        """Return the exit code of the node's process: 143 after SIGTERM, 137 after SIGKILL, 0 while it runs."""
        return int(self._container(node).attrs["State"]["ExitCode"])

    def collect_logs(self, folder: Path, *, since_s: float) -> None:
        """Write each container's log since `since_s` (Unix time in seconds) to `<node>.log` in `folder`.

        The complete logs of containers that `replace` removed come first. Values of settings that may be secrets are
        replaced.
        """
        with ThreadPoolExecutor(_LOGS_AT_ONCE) as pool:
            list(pool.map(lambda node: self.collect_log(node, folder, since_s=since_s), (*self.nodes, "toxiproxy")))

    def collect_log(self, node: str, folder: Path, *, since_s: float) -> None:
        """Write a container's log as `collect_logs` does."""
        folder.mkdir(parents=True, exist_ok=True)
        log: bytes = self._container(node).logs(since=since_s or None, timestamps=False)
        redact = Redaction(self.spec.settings)
        (folder / f"{node}.log").write_bytes(redact.data(self._replaced.get(node, b"") + log))

    def _container(self, node: str) -> Any:
        return self._docker.containers.get(f"{self.address.name}-{node}-1")
