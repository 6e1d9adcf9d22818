"""One cluster: brought up by Compose, driven node by node, taken down. Nothing here knows a run.

    with pool.lease(spec, keep=False) as cluster:   → containers, networks, a folder with the brokers' data
        cluster.kill("broker2"); cluster.start("broker2")
                                                    → nothing left, folder removed

What a cluster is made of, and what can be done with it, its system says (`harness/model/system.py`).
"""

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import docker
from testcontainers.compose import DockerCompose

from onceproof.harness.artifacts import images
from onceproof.harness.base import paths
from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.cluster import topology
from onceproof.harness.cluster.addresses import Address
from onceproof.harness.cluster.admin import Admin
from onceproof.harness.cluster.containers import LABEL, already, remove, remove_container
from onceproof.harness.cluster.links import Proxies
from onceproof.harness.cluster.request_proxy import Wire
from onceproof.harness.model import registry
from onceproof.harness.model.spec import ClusterSpec

_UP_DEADLINE_S = 90
_PROXY_DEADLINE_S = 20.0
_STOP_DEADLINE_S = 30
_WIRE_PORT = 4
_LOGS_AT_ONCE = 8


class Cluster:
    """A running Kafka cluster of three brokers and three controllers behind Toxiproxy."""

    def __init__(self, spec: ClusterSpec, address: Address) -> None:
        self.spec = spec
        self.system = registry.system(spec.system)
        self.address = address
        self.folder = paths.clusters_dir() / address.name
        self.proxies = Proxies(address.ports * 100)
        self._docker = docker.from_env(timeout=_STOP_DEADLINE_S + 10)
        self._admin: Admin | None = None
        self.wire: Wire | None = None
        self.used_up = False
        self._replaced: dict[str, bytes] = {}
        self._wired: dict[str, str] = {}
        self._restarting = threading.Lock()

    @property
    def admin(self) -> Admin:
        """The Java Admin client, on the observer's lane."""
        if self._admin is None:
            self._admin = Admin(self.bootstrap(topology.OBSERVER_LANE), name=self.address.name)
        return self._admin

    def bootstrap(self, lane: int) -> str:
        return topology.bootstrap(self.address.ports, lane)

    def log_dirs(self) -> dict[str, Path]:
        return {f"broker{n}": self.folder / "data" / f"broker{n}" / "log" for n in topology.BROKERS}

    # Life

    def write_files(self) -> None:
        """The folder of the cluster: what Compose needs, and what a later process needs to find it."""
        for node in topology.NODES:
            (self.folder / "data" / node).mkdir(parents=True, exist_ok=True)
        settings = ";".join(f"{key}={_property(value)}" for key, value in sorted(self.spec.settings.items()))
        features = " ".join(f"{key}={value}" for key, value in sorted(self.spec.features.items()))
        environment = {
            "ONCEPROOF_NAME": self.address.name,
            "ONCEPROOF_HOME_LABEL": str(paths.home()),
            "ONCEPROOF_KAFKA_IMAGE": self.system.image(self.spec.version),
            "ONCEPROOF_TOXIPROXY_IMAGE": images.TOXIPROXY_IMAGE,
            "ONCEPROOF_WIRE_IMAGE": images.wire_tag(),
            "ONCEPROOF_USER": f"{os.getuid()}:{os.getgid()}",
            "ONCEPROOF_DATA": str(self.folder / "data"),
            "ONCEPROOF_PORTS": str(self.address.ports),
            "ONCEPROOF_SUBNET": self.address.subnet,
            "ONCEPROOF_FEATURES": features,
            "ONCEPROOF_SETTINGS": settings,
        }
        self._use_formatted()
        (self.folder / "cluster.env").write_text("".join(f"{key}={value}\n" for key, value in environment.items()))
        described = {"schema_version": 1, "spec": self.spec.model_dump(mode="json"), "address": asdict(self.address)}
        (self.folder / "cluster.json").write_text(json.dumps(described, indent=1, sort_keys=True) + "\n")

    def up(self) -> None:
        """Start everything and wait until three brokers are registered. Raises HarnessError, DeadlineError."""
        self._start()
        until("three registered brokers", self._registered, deadline_s=_UP_DEADLINE_S, every_s=0.5)
        self._keep_formatted()

    def _start(self, *services: str, profile: str | None = None) -> None:
        """Start these services, or all; one whose image has changed is made anew. Raises HarnessError."""
        compose = DockerCompose(
            context=self.system.compose(),
            compose_file_name="cluster.yaml",
            env_file=str(self.folder / "cluster.env"),
            wait=False,
            profiles=[profile] if profile else None,
            services=list(services) or None,
        )
        try:
            compose.start()
        except Exception as error:
            stderr = getattr(error, "stderr", b"") or b""
            raise HarnessError(f"docker compose up: {stderr.decode(errors='replace')[-400:] or error}") from error

    def down(self) -> None:
        """Remove containers, networks and data. Twice is harmless."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None
        remove(self.address.name, self._docker)
        shutil.rmtree(self.folder, ignore_errors=True)
        self._docker.close()

    def _formatted(self) -> Path:
        features = "".join(f"-{key}-{value}" for key, value in sorted(self.spec.features.items()))
        return paths.home() / "formatted" / f"{self.spec.version}{features}"

    def _use_formatted(self) -> None:
        """Formatting starts a JVM a node, which is half of a cluster's start; what it writes is always the same."""
        if self._formatted().is_dir():
            shutil.copytree(self._formatted(), self.folder / "data", dirs_exist_ok=True)

    def _keep_formatted(self) -> None:
        target = self._formatted()
        if target.is_dir():
            return
        work = target.with_name(f".{target.name}-{self.address.name}")
        for node in topology.NODES:
            (work / node / "log").mkdir(parents=True)
            for name in ("meta.properties", "bootstrap.checkpoint"):
                shutil.copy(self.folder / "data" / node / "log" / name, work / node / "log" / name)
        work.rename(target)

    def healthy(self) -> bool:
        """All containers running, every link open, all brokers registered, and nothing done that stays."""
        if self.used_up:
            return False
        try:
            containers = self._docker.containers.list(all=True, filters={"label": f"{LABEL}={self.address.name}"})
            running = sum(container.status == "running" for container in containers)
            return running == len(topology.NODES) + 1 and self.proxies.healthy() and self._registered()
        except Exception:  # whatever it is: not healthy
            return False

    def _registered(self) -> bool:
        return len(self.admin.brokers()) == len(topology.BROKERS)

    # The wire proxy

    def put_wire(self, links: Iterable[str], on_event: Callable[[dict[str, Any]], None]) -> None:
        """Start the wire proxy and lead these links through it, which closes what is open on them. `on_event` is called
        with each line of its journal. Raises HarnessError, DeadlineError."""
        images.wire()
        self._start("wire", profile="wire")
        self.wire = Wire(self.address.ports * 100 + _WIRE_PORT, on_event)
        self._wired = {link.name: link.wired for link in topology.links() if link.name in set(links)}
        self.proxies.lead(self._wired)

    def take_wire_out(self) -> None:
        """Lead every link straight again, and end the wire proxy. Harmless without one."""
        if self.wire is None:
            return
        self.wire.close()
        self.wire = None
        self.proxies.lead({link.name: link.upstream for link in topology.links() if link.name in self._wired})
        self._wired = {}
        remove_container(self._container("wire"))

    # Nodes

    def kill(self, node: str) -> None:
        """SIGKILL the node's process. A node that is already dead stays so."""
        with already("is not running"):
            self._container(node).kill(signal="SIGKILL")

    def stop(self, node: str) -> None:
        """SIGTERM, and wait for the clean end: a broker hands over its leaderships first."""
        self._container(node).stop(timeout=_STOP_DEADLINE_S)

    def start(self, node: str) -> None:
        self._container(node).start()

    def pause(self, node: str) -> None:
        """Freeze the node (cgroup freezer): it answers nothing, its connections stay open."""
        with already("already paused"):
            self._container(node).pause()

    def resume(self, node: str) -> None:
        with already("is not paused"):
            self._container(node).unpause()

    def replace(self, node: str, version: str) -> None:
        """Stop a node cleanly and start it with another release, on its own data. The cluster is used up by it."""
        self.used_up = True
        self.stop(node)
        self._replaced[node] = self._replaced.get(node, b"") + self._container(node).logs(timestamps=False)
        with (self.folder / "cluster.env").open("a") as environment:
            environment.write(f"ONCEPROOF_{node.upper()}_IMAGE={self.system.image(version)}\n")
        self._start(node)

    def image(self, node: str) -> str:
        """The image that a node runs, as the engine says."""
        return str(self._container(node).attrs["Config"]["Image"])

    def state(self, node: str) -> str:
        """What the engine says of the node's container: running, paused, exited, …"""
        return str(self._container(node).status)

    def exit_code(self, node: str) -> int:
        """With what the node's process ended, when it did: 143 by SIGTERM, 137 by SIGKILL; 0 while it runs."""
        return int(self._container(node).attrs["State"]["ExitCode"])

    def heal(self) -> None:
        """Every node running, every link open. Twice is harmless."""
        for node in topology.NODES:
            container = self._container(node)
            if container.status == "paused":
                container.unpause()
            elif container.status != "running":
                container.start()
        self._or_restarted(self.proxies.heal_all)

    def heal_links(self, names: Iterable[str], *, close: bool) -> bool:
        """As `proxies.heal_links`; twice is harmless. False when Toxiproxy had to be started anew for it."""
        return self._or_restarted(lambda: self.proxies.heal_links(names, close=close))

    def _or_restarted(self, heal: Callable[[], None]) -> bool:
        """Toxiproxy may hang for good when a toxic is removed from a link whose ends have gone (its issue 558). It is
        then started anew, which closes every link: what it held is lost, as when a switch is replaced."""
        with suppress(HarnessError):
            heal()
            return True
        with self._restarting:
            with suppress(HarnessError):
                heal()  # another fault's heal has started it anew
                return False
            self._container("toxiproxy").restart(timeout=0)
            until("Toxiproxy to be back", self.proxies.healthy, deadline_s=_PROXY_DEADLINE_S)
            self.proxies.lead(self._wired)
            return False

    def collect_logs(self, folder: Path, *, since_s: float) -> None:
        """Write each container's log since that wall-clock time to `<node>.log`, behind all that the ones said which it
        replaced."""
        folder.mkdir(parents=True, exist_ok=True)

        def collect(node: str) -> None:
            told: bytes = self._container(node).logs(since=since_s, timestamps=False)
            (folder / f"{node}.log").write_bytes(self._replaced.get(node, b"") + told)

        with ThreadPoolExecutor(_LOGS_AT_ONCE) as pool:
            list(pool.map(collect, (*topology.NODES, "toxiproxy")))

    def _container(self, node: str) -> Any:
        return self._docker.containers.get(f"{self.address.name}-{node}-1")


def _property(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
