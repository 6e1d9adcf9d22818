"""The system `kafka`: Apache Kafka from the jars of a release, in containers that Docker Compose starts."""

from onceproof.harness.artifacts import images
from onceproof.harness.base import paths
from onceproof.harness.model.system import System

SYSTEM = System(
    name="kafka",
    about="Apache Kafka 3.x and 4.x, from the jars of a release",
    versions=r"[34]\.[0-9]{1,3}\.[0-9]{1,3}",
    capabilities=frozenset({"nodes", "links", "log-access", "transaction-state", "features"}),
    image=images.kafka,
    compose=paths.compose_dir,
)
