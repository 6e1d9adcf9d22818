"""The driver of a client: the package that makes its library's calls behind `Reader` and `Writer`.

driver("java==3.9.2").Reader(config)
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from onceproof.harness.artifacts import clients
from onceproof.workloads.clients import Reader, Writer


class Driver(Protocol):
    """What the package of a driver has."""

    @property
    def Reader(self) -> Callable[[Mapping[str, Any]], Reader]:
        """Makes a consumer from a worker's configuration."""
        ...

    @property
    def Writer(self) -> Callable[[Mapping[str, Any], str | None], Writer]:
        """Makes a producer from a worker's configuration and a transactional id, or None."""
        ...

    def library(self) -> str:
        """The library in this process, once a reader or writer is made: its name and the version that it reports."""
        ...


def driver(client: str) -> Driver:
    """The driver of a client as a scenario names it, with a version or without. Only this one's library is imported."""
    if clients.family(client) == "java":
        from onceproof.workloads.clients import java

        return java
    from onceproof.workloads.clients import librdkafka

    return librdkafka
