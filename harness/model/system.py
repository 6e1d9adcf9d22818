"""A system: what a cluster is made of, and what the harness can do with it.

    SYSTEM = System(
        name="kafka", about="Apache Kafka, from its jars", versions=r"[34]\\.\\d+\\.\\d+",
        capabilities=frozenset({"nodes", "links", "log-access", "transaction-state", "features"}),
        image=images.kafka, compose=paths.compose_dir,
    )

Other systems are registered as entry points of the group `onceproof.systems`, or named in a scenario as
`system = "FILE.py:NAME"`. A system's Compose file has the services, networks and ports of compose/cluster.yaml, since
every link and lane is a Toxiproxy proxy with a name (`harness/cluster/topology.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Capability = Literal["nodes", "links", "log-access", "transaction-state", "features"]


@dataclass(frozen=True, kw_only=True)
class System:
    """One kind of cluster.

    `versions`      a regular expression that a version must match as a whole
    `image`         the tag of a version's image, which is made when it is not there; raises BadInput for a version
                    that does not exist
    `compose`       the folder with `cluster.yaml` and what it mounts
    `capabilities`  nodes: containers that can be killed, stopped and paused by their names
                    links: every connection passes a Toxiproxy proxy
                    log-access: the segments of every replica can be read as files in Kafka's format
                    transaction-state: DescribeTransactions and DescribeProducers answer (KIP-664)
                    features: finalized features can be read and raised (KIP-584)

    A fault that needs a capability that is missing is refused with the scenario; a check that needs one is `not
    judged`, and the verdict is then `unknown` at best.
    """

    name: str
    about: str
    versions: str
    capabilities: frozenset[Capability]
    image: Callable[[str], str]
    compose: Callable[[], Path]
