"""Finds a project name, host ports and a subnet that nothing else on this machine uses."""

import os
import secrets
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

import docker
import psutil

from onceproof.harness.base.errors import HarnessError

# Toxiproxy's API, that of the request proxy, and each lane of each broker and of PostgreSQL (compose/cluster.yaml).
_PUBLISHED = (0, 4, *(lane * 10 + number for lane in range(5) for number in (1, 2, 3, 5)))


@dataclass(frozen=True, kw_only=True)
class Address:
    """The name, ports and subnet of one cluster, unique on this machine.

    `name`      the name of the Compose project
    `ports`     the hundreds of the host ports: 190 stands for the ports 19000 to 19099
    `subnet`    the first three octets of a /24 subnet, such as `10.213.0`
    """

    name: str
    ports: int
    subnet: str


def free_address(kind: str = "onceproof") -> Address:
    """Return an unused project name, which begins with `kind`, a block of a hundred host ports and a /24 subnet.

    The caller must hold the lock of `lock_file`. Raises HarnessError when no block is free.
    """
    client = docker.from_env(timeout=20)
    try:
        subnets = {
            config.get("Subnet", "")
            for network in client.networks.list()
            for config in (network.attrs.get("IPAM", {}).get("Config") or [])
        }
    finally:
        client.close()
    local = {address.address for each in psutil.net_if_addrs().values() for address in each}
    for number in range(100):
        ports, subnet = 190 + number, f"10.213.{number}"
        taken = any(used.startswith(f"{subnet}.") for used in (*subnets, *local))
        if not taken and all(_port_free(ports * 100 + offset) for offset in _PUBLISHED):
            return Address(name=f"{kind}-{number:02d}-{secrets.token_hex(2)}", ports=ports, subnet=subnet)
    raise HarnessError(
        "no free block of a hundred ports in 19000 to 28999 with a free subnet in 10.213.0.0/24 to 10.213.99.0/24"
    )


def lock_file() -> Path:
    """Return the lock under which addresses are chosen: one for all homes, which share the engine and the ports."""
    return Path(tempfile.gettempdir()) / f"onceproof-{os.getuid()}-addresses.lock"


def _port_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
