"""Names and addresses: nodes, links between them, lanes into them. The facts that compose/links.json is made of.

    broker1->broker2      what broker 1 says to broker 2; so has every directed pair, self links of brokers included
    lane2->broker1        what the owner of lane 2 says to broker 1
    app->broker3          what an application inside Docker says to broker 3

A broker also calls itself by its advertised address (a transaction coordinator that writes a marker to a partition
on its own broker), so leaving the self links out would leave every transaction unfinished.
"""

from collections.abc import Iterator
from dataclasses import dataclass

BROKERS = (1, 2, 3)
CONTROLLERS = (1, 2, 3)
CONTROLLER_ID_BASE = 100
LANES = (0, 1, 2, 3, 4)
OBSERVER_LANE = 0
WIRE_LINK_PORTS = 20_000
NODES = (*(f"broker{n}" for n in BROKERS), *(f"controller{n}" for n in CONTROLLERS))


@dataclass(frozen=True, kw_only=True)
class Link:
    """One Toxiproxy proxy: where it listens (inside its container), and where it leads."""

    name: str
    listen: str
    upstream: str

    @property
    def wired(self) -> str:
        """Its upstream when it is led through the wire proxy."""
        return f"wire:{WIRE_LINK_PORTS + [each.name for each in links()].index(self.name)}"


def links() -> Iterator[Link]:
    """Every proxy of a cluster."""
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
        yield Link(name=f"app->broker{broker}", listen=f"gw-apps:2930{broker}", upstream=f"broker{broker}:9210")


def to_brokers() -> list[str]:
    """The links that the wire proxy can stand behind: those that end at a broker."""
    return [each.name for each in links() if each.name.split("->")[1].startswith("broker")]


def link(source: str, target: str) -> str:
    return f"{source}->{target}"


def is_controller(node: str) -> bool:
    return node.startswith("controller")


def node_of(kafka_id: int) -> str:
    """The node's name for a Kafka node id (brokers 1…, controllers 101…)."""
    if kafka_id > CONTROLLER_ID_BASE:
        return f"controller{kafka_id - CONTROLLER_ID_BASE}"
    return f"broker{kafka_id}"


def links_of(node: str) -> list[str]:
    """Every link that begins or ends at a node, lanes and applications included."""
    return [each.name for each in links() if node in each.name.split("->")]


def links_between(some: set[str], others: set[str]) -> list[str]:
    """The links between nodes of two sets, in both directions; clients still reach them."""
    ends = ((each.name, *each.name.split("->")) for each in links())
    return [name for name, a, b in ends if (a in some and b in others) or (a in others and b in some)]


def lane_links(lane: int) -> list[str]:
    return [f"lane{lane}->broker{broker}" for broker in BROKERS]


def lane_of_worker(worker: int) -> int:
    """Worker 0 owns lane 1: lane 0 is the observer's."""
    return worker + 1


def bootstrap(ports: int, lane: int) -> str:
    """The bootstrap addresses of a lane; `ports` is the cluster's prefix (190 → ports 19000 to 19099)."""
    return ",".join(f"127.0.0.1:{ports}{lane}{broker}" for broker in BROKERS)
