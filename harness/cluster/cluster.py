"""One cluster: Docker Compose starts it, and its nodes and links can be acted on one by one.

    with pool.lease(spec, keep=False) as cluster:   # containers, networks, a folder with the brokers' data
        cluster.kill("broker2")
        cluster.start("broker2")
                                                    # containers, networks and folder are removed

The system of the cluster (`harness/model/system.py`) determines its images and capabilities. This module knows nothing
about runs.
"""

import json
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from onceproof.harness.artifacts import images
from onceproof.harness.base import host, paths
from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.cluster import composed, disks, formatted, topology
from onceproof.harness.cluster.addresses import Address
from onceproof.harness.cluster.admin import Admin
from onceproof.harness.cluster.containers import LABEL, remove, remove_container
from onceproof.harness.cluster.links import Proxies
from onceproof.harness.cluster.nodes import Nodes
from onceproof.harness.cluster.properties import properties
from onceproof.harness.cluster.request_proxy import Wire
from onceproof.harness.model.spec import ClusterSpec

_UP_DEADLINE_S = 90
_PROXY_DEADLINE_S = 20.0
_WIRE_PORT = 4
_STACK = ("\tat ", "\t... ")  # how lines of Java's stack traces begin


class Cluster(Nodes):
    """A cluster of three brokers and three controllers, each behind Toxiproxy.

    `wire` is the request proxy, or None while no link is routed through it.
    """

    def __init__(self, spec: ClusterSpec, address: Address) -> None:
        super().__init__(spec, address)
        self.proxies = Proxies(address.ports * 100)
        self._admin: Admin | None = None
        self.wire: Wire | None = None
        self._wired: dict[str, str] = {}
        self._restarting = threading.Lock()
        self._restarts = 0  # of Toxiproxy

    @property
    def admin(self) -> Admin:
        """The Java Admin client, connected through the observer's lane."""
        if self._admin is None:
            self._admin = Admin(self.bootstrap(topology.OBSERVER_LANE), name=self.address.name)
        return self._admin

    def bootstrap(self, lane: int) -> str:
        """Return the `bootstrap.servers` of a lane."""
        return topology.bootstrap(self.address.ports, lane)

    @property
    def apps_network(self) -> str:
        """The name of the network in which applications reach the brokers at `topology.APP_BOOTSTRAP`."""
        return f"{self.address.name}_apps"

    # Start and removal

    def write_files(self) -> None:
        """Write the cluster's folder: the environment for Compose, and `cluster.json` for processes that reuse it."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for node in topology.NODES:
            (self.folder / "data" / node).mkdir(parents=True, exist_ok=True)
            if self.spec.disk_mb is not None and node in self.log_dirs():
                disks.mount(self.folder / "data" / node, self.spec.disk_mb)
            # A file, since no value of a scenario may become a part of Compose's environment.
            (self.folder / "data" / node / "settings.properties").write_text(properties(self.spec.settings))
        user = host.container_user(self._docker.info())
        environment = composed.environment(self.spec, self.system, self.address, self.folder / "data", user)
        formatted.use(self.spec, self.folder / "data")
        composed.write_environment(self.folder, environment)
        described = {"schema_version": 1, "spec": self.spec.described(), "address": asdict(self.address)}
        (self.folder / "cluster.json").write_text(json.dumps(described, indent=1, sort_keys=True) + "\n")

    def up(self) -> None:
        """Start all containers and wait until three brokers are registered.

        Raises HarnessError when Compose fails, and DeadlineError after 90 seconds. The message says which nodes do not
        run, with their last lines, and where the logs of all nodes are kept.
        """
        try:
            composed.start(self.system, self.folder)
            until(
                "three registered brokers",
                self._registered,
                deadline_s=_UP_DEADLINE_S,
                every_s=0.5,
                abort=self._check_running,
            )
        except HarnessError as error:
            raise type(error)(f"{error}{self._why_not_up()}") from None
        formatted.keep(self.spec, self.folder / "data", self.address.name)

    def _check_running(self) -> None:
        """Raise HarnessError as soon as a node has exited: nothing restarts it while the cluster starts."""
        gone = [node for node in topology.NODES if self.state(node) == "exited"]
        if gone:
            raise HarnessError(f"{', '.join(gone)} exited while the cluster started")

    def _why_not_up(self) -> str:
        """Keep the logs of a cluster that did not start, and return what nodes that do not run wrote last."""
        folder = paths.home() / "failed" / self.address.name
        told: dict[str, list[str]] = {}
        for node in (*topology.NODES, "toxiproxy"):
            with suppress(Exception):  # there may be no such container, or no engine
                self.collect_log(node, folder, since_s=0)
                if (state := self.state(node)) != "running":
                    lines = (folder / f"{node}.log").read_text(errors="replace").splitlines()
                    said = [line for line in lines if line and not line.startswith(_STACK)]
                    told.setdefault(f"{state}: {' '.join(said[-1:])[:300]}", []).append(node)
        says = "".join(f"; {', '.join(nodes)}: {last}" for last, nodes in told.items())
        return f"{says}; the nodes' logs are in {folder}" if folder.exists() else says

    def down(self) -> None:
        """Remove the containers, networks and data of the cluster. This call is idempotent."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None
        remove(self.address.name, self._docker)
        disks.remove(self.folder)
        self._docker.close()

    def healthy(self) -> bool:
        """Return whether all containers run, all links are intact, all brokers are registered and it is not used up."""
        if self.used_up:
            return False
        try:
            containers = self._docker.containers.list(all=True, filters={"label": f"{LABEL}={self.address.name}"})
            running = sum(container.status == "running" for container in containers)
            return running == len(topology.NODES) + 1 and self.proxies.healthy() and self._registered()
        except Exception:  # a cluster that cannot be queried is not healthy
            return False

    def _registered(self) -> bool:
        return len(self.admin.brokers()) == len(topology.BROKERS)

    # The request proxy

    def put_wire(
        self, links: Iterable[str], on_event: Callable[[dict[str, Any]], None], *, report: Iterable[str] = ()
    ) -> None:
        """Start the request proxy and route these links through it, which closes their open connections.

        `on_event` is called with each line that the proxy reports: what happens to the requests that a rule takes, and
        all requests on the links in `report`. Raises HarnessError or DeadlineError when the proxy
        does not start.
        """
        images.wire()
        composed.start(self.system, self.folder, "wire", profile="wire")
        self._planned.end("wire")
        self.wire = Wire(self.address.ports * 100 + _WIRE_PORT, on_event)
        if report := set(report):
            self.wire.report(report)
        self._wired = {link.name: link.wired for link in topology.links() if link.name in set(links)}
        self.proxies.lead(self._wired)

    def take_wire_out(self) -> None:
        """Route every link directly to its node and remove the request proxy, if there is one."""
        if self.wire is None:
            return
        self.wire.close()
        self.wire = None
        self.proxies.lead({link.name: link.upstream for link in topology.links() if link.name in self._wired})
        self._wired = {}
        self._planned.begin("wire")
        remove_container(self._container("wire"))

    # The database

    def put_database(self) -> None:
        """Start PostgreSQL, with an empty database, and wait until it accepts connections.

        Raises HarnessError or DeadlineError when it does not start.
        """
        composed.start(self.system, self.folder, topology.DATABASE, profile=topology.DATABASE, healthy=True)
        self._planned.end(topology.DATABASE)
        self.nodes = (*topology.NODES, topology.DATABASE)

    def take_database_out(self) -> None:
        """Remove PostgreSQL with its data, if there is one."""
        if topology.DATABASE not in self.nodes:
            return
        self.nodes = topology.NODES
        self._planned.begin(topology.DATABASE)
        remove_container(self._container(topology.DATABASE))

    def heal(self) -> None:
        """Start or resume every node that does not run, and restore every link. This call is idempotent."""
        self.give_log_directories_back()
        self.make_room()
        for node in self.nodes:
            container = self._container(node)
            if container.status == "paused":
                container.unpause()
            elif container.status != "running":
                container.start()
                self._planned.end(node)
        self._or_restarted(self.proxies.heal_all)

    def heal_links(self, names: Iterable[str], *, fault: str, close: bool) -> bool:
        """Restore these links as `Proxies.heal_links` does; return False when Toxiproxy had to be restarted for it."""
        return self._or_restarted(lambda: self.proxies.heal_links(names, fault=fault, close=close))

    def _or_restarted(self, heal: Callable[[], None]) -> bool:
        """Call `heal`; when it fails, restart Toxiproxy and return False.

        Toxiproxy can hang permanently when a toxic is removed from a link whose connections were closed (Toxiproxy
        issue 558). A restart closes the connections of every link and loses the bytes that Toxiproxy held.
        """
        restarts = self._restarts
        with suppress(HarnessError):
            heal()
            return True
        with self._restarting:
            if self._restarts > restarts:  # by another thread, meanwhile
                with suppress(HarnessError):
                    heal()
                    return False
            self._restarts += 1
            self._planned.begin("toxiproxy")
            self._container("toxiproxy").restart(timeout=0)
            self._planned.end("toxiproxy")
            until("Toxiproxy to restart with healthy links", self.proxies.healthy, deadline_s=_PROXY_DEADLINE_S)
            self.proxies.lead(self._wired)
            self.proxies.apply_again()
            return False
