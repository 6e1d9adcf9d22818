"""The drivers of Kafka clients: packages that implement `Reader` and `Writer` with one library each.

    driver("java==3.9.2").Reader(config)

`config` is a worker's configuration, which the harness writes as JSON: addresses, names, time-outs and the wiring.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from onceproof.harness.artifacts import clients
from onceproof.workloads.clients import Reader, Writer


class Driver(Protocol):
    """The names that a driver's package defines."""

    @property
    def Reader(self) -> Callable[[Mapping[str, Any]], Reader]:
        """The class of the consumer; called with the worker's configuration."""
        ...

    @property
    def Writer(self) -> Callable[[Mapping[str, Any], str | None], Writer]:
        """The class of the producer; called with the configuration and a transactional id, or None."""
        ...

    def library(self) -> str:
        """Return the library's name and the version that it reports, after a reader or writer was made."""
        ...


def driver(client: str) -> Driver:
    """Return the driver for a client as a scenario names it, with or without a version (`java==3.9.2`, `librdkafka`).

    Only the library of that client is imported.
    """
    if clients.family(client) == "java":
        from onceproof.workloads.clients import java

        return java
    from onceproof.workloads.clients import librdkafka

    return librdkafka
