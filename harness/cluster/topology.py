"""Names and addresses of nodes, of the links between them and of the lanes of clients, as in compose/links.json.

    broker1->broker2      connections of broker 1 to broker 2; every ordered pair of nodes has its own link
    lane2->broker1        connections of the owner of lane 2 to broker 1
    app->broker3          connections of executors in containers to broker 3
    lane2->database       connections of the owner of lane 2 to PostgreSQL, in runs that keep outputs there

A broker has a link to itself, since it also connects to its own advertised address: a transaction coordinator does so
to write a marker to a partition of its own broker. Without that link no such transaction would complete. A controller
has none.
"""

from collections.abc import Iterator
from dataclasses import dataclass

BROKERS = (1, 2, 3)
CONTROLLERS = (1, 2, 3)
CONTROLLER_ID_BASE = 100
LANES = (0, 1, 2, 3, 4)
OBSERVER_LANE = 0
WIRE_LINK_PORTS = 20_000
DATABASE = "database"
_APP_PORTS = 29_300
APP_BOOTSTRAP = ",".join(f"toxiproxy:{_APP_PORTS + broker}" for broker in BROKERS)  # in the network of applications
NODES = (*(f"broker{n}" for n in BROKERS), *(f"controller{n}" for n in CONTROLLERS))


@dataclass(frozen=True, kw_only=True)
class Link:
    """One Toxiproxy proxy.

    `listen`    the address on which it listens inside its container
    `upstream`  the address to which it forwards
    """

    name: str
    listen: str
    upstream: str

    @property
    def wired(self) -> str:
        """The upstream of this link when it is routed through the request proxy."""
        return f"wire:{WIRE_LINK_PORTS + [each.name for each in links()].index(self.name)}"


def links() -> Iterator[Link]:
    """Yield every link of a cluster, in the order of compose/links.json."""
    for source in NODES:
        for target in NODES:
            if source == target and is_controller(target):
                continue
            number = int(target[-1])
            listen, port = (29200 + number, 9300) if is_controller(target) else (29100 + number, 9100)
            yield Link(name=link(source, target), listen=f"gw-{source}:{listen}", upstream=f"{target}:{port}")
    for lane in LANES:
        for broker in BROKERS:
            yield Link(
                name=f"lane{lane}->broker{broker}",
                listen=f"0.0.0.0:90{lane}{broker}",
                upstream=f"broker{broker}:920{lane}",
            )
    for broker in BROKERS:
        gateway = f"gw-apps:{_APP_PORTS + broker}"
        yield Link(name=f"app->broker{broker}", listen=gateway, upstream=f"broker{broker}:9210")
    for lane in LANES:
        yield Link(name=f"lane{lane}->{DATABASE}", listen=f"0.0.0.0:90{lane}5", upstream=f"{DATABASE}:5432")


def to_brokers() -> list[str]:
    """Return the links that can be routed through the request proxy, which are those to a broker."""
    return [each.name for each in links() if each.name.split("->")[1].startswith("broker")]


def link(source: str, target: str) -> str:
    """Return the name of the link from one node to another."""
    return f"{source}->{target}"


def is_controller(node: str) -> bool:
    """Return whether a node name is that of a controller."""
    return node.startswith("controller")


def node_of(kafka_id: int) -> str:
    """Return the node name for a Kafka node id: brokers have ids from 1, controllers from 101."""
    if kafka_id > CONTROLLER_ID_BASE:
        return f"controller{kafka_id - CONTROLLER_ID_BASE}"
    return f"broker{kafka_id}"


def links_of(node: str) -> list[str]:
    """Return every link from or to a node, those of lanes and applications included."""
    return [each.name for each in links() if node in each.name.split("->")]


def links_between(some: set[str], others: set[str]) -> list[str]:
    """Return the links between the nodes of two sets, in both directions; links of clients are not included."""
    ends = ((each.name, *each.name.split("->")) for each in links())
    return [name for name, a, b in ends if (a in some and b in others) or (a in others and b in some)]


def lane_links(lane: int) -> list[str]:
    """Return the links of a lane to the brokers, one to each."""
    return [f"lane{lane}->broker{broker}" for broker in BROKERS]


def lane_of_worker(worker: int) -> int:
    """Return the lane of a worker: worker 0 owns lane 1, because lane 0 belongs to the observer."""
    return worker + 1


def worker_of_link(name: str) -> int:
    """Return the worker that owns the lane of a link. Raises ValueError if the link belongs to no worker's lane."""
    lane = int(name.partition("->")[0].removeprefix("lane"))
    if lane == OBSERVER_LANE:
        raise ValueError(f"{name} belongs to the observer's lane")
    return lane - 1


def bootstrap(ports: int, lane: int) -> str:
    """Return the `bootstrap.servers` of a lane; `ports` is that of the cluster's `Address`."""
    return ",".join(f"127.0.0.1:{ports}{lane}{broker}" for broker in BROKERS)


def database(ports: int, lane: int) -> str:
    """Return the JDBC URL of the cluster's PostgreSQL on a lane; `ports` is that of the cluster's `Address`."""
    return f"jdbc:postgresql://127.0.0.1:{ports}{lane}5/postgres?user=postgres"
