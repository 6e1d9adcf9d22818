r"""A system defines the images of a cluster's nodes and the capabilities that faults and checks may use.

    SYSTEM = System(
        name="kafka", about="Apache Kafka, from the jars of a release", versions=r"[34]\.\d+\.\d+",
        capabilities=frozenset({"nodes", "links", "log-access", "transaction-state", "features"}),
        image=images.kafka, compose=paths.compose_dir,
    )

Other systems are registered as entry points of the group `onceproof.systems`, or named in a scenario as
`system = "FILE.py:NAME"`. A system's Compose file must have the services, networks and ports of compose/cluster.yaml,
because every link and lane is a named Toxiproxy proxy (`harness/cluster/topology.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Capability = Literal["nodes", "links", "log-access", "transaction-state", "features"]


@dataclass(frozen=True, kw_only=True)
class System:
    """A kind of cluster that a scenario can name.

    `name`          the name of the system in a scenario
    `about`         a description of one line
    `versions`      a regular expression that the whole version must match
    `image`         returns the tag of a version's image and builds a missing image; raises BadInput for a version that
                    does not exist
    `compose`       returns the folder with `cluster.yaml` and the files that it mounts
    `capabilities`  nodes: containers can be killed, stopped and paused by their names
                    links: every connection passes a Toxiproxy proxy
                    log-access: the segments of every replica can be read as files in Kafka's format
                    transaction-state: DescribeTransactions and DescribeProducers are answered (KIP-664)
                    features: finalized features can be read and raised (KIP-584)

    A scenario is refused if one of its faults needs a missing capability. A check that needs one is `not judged`, and
    the verdict is then `unknown` at best.
    """

    name: str
    about: str
    versions: str
    capabilities: frozenset[Capability]
    image: Callable[[str], str]
    compose: Callable[[], Path]
