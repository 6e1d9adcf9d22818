"""Finds the containers and networks of a cluster by label, and removes them in any state."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import docker
import docker.errors

LABEL = "io.onceproof.cluster"
HOME_LABEL = "io.onceproof.home"
_AT_ONCE = 8
_ENGINE_S = 40


@cache
def engine() -> Any:
    """Return the client of the Docker engine that this process shares."""
    return docker.from_env(timeout=_ENGINE_S)


@contextmanager
def already(done: str) -> Iterator[None]:
    """Suppress Docker's error that contains `done`, so that repeating an operation has no effect."""
    try:
        yield
    except docker.errors.APIError as error:
        if done not in str(error):
            raise


def remove(name: str, client: Any) -> int:
    """Remove all containers and networks that are labelled with a cluster's name; return their number."""
    mine = {"label": f"{LABEL}={name}"}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        containers = list(pool.map(remove_container, client.containers.list(all=True, filters=mine)))
        networks = list(pool.map(_remove_network, client.networks.list(filters=mine)))
    return len(containers) + len(networks)


def remove_container(container: Any) -> None:
    """Remove a container and its volumes in any state; a container that is gone is no error."""
    with _gone():
        if container.status == "paused":
            container.unpause()
        container.remove(force=True, v=True)


def _remove_network(network: Any) -> None:
    with _gone():
        network.remove()


@contextmanager
def _gone() -> Iterator[None]:
    try:
        yield
    except docker.errors.NotFound:
        pass
    except docker.errors.APIError as error:
        if "removal" not in str(error) and "is not paused" not in str(error):
            raise
