"""Refuse a Spark master that is none, or that does not answer, before Spark is started with it.

It also says where the executors of a master run, as its URL tells it.
"""

import ipaddress
import re
import socket
from contextlib import suppress

from onceproof.harness.base.errors import BadInput, HarnessError

_NUMBER = "[1-9][0-9]{0,3}"
_ONE_PROCESS = re.compile(rf"local(\[({_NUMBER}|\*)(,{_NUMBER})?\])?")
_PROCESSES = re.compile(rf"local-cluster\[{_NUMBER},{_NUMBER},[1-9][0-9]{{2,6}}\]")
_STANDALONE = re.compile(r"spark://([^/,\s:]+:[0-9]{1,5}(?:,[^/,\s:]+:[0-9]{1,5})*)")
_OTHER = re.compile(r"yarn|k8s://\S+")
_ALLOWED = "local, local[N], local[*], local-cluster[WORKERS,CORES,MiB], spark://HOST:PORT, yarn, k8s://URL"
_ANSWER_DEADLINE_S = 5.0


def check(master: str) -> None:
    """Raise BadInput when `master` is not a Spark master, or when no host of a standalone master accepts a connection.

    A host has five seconds.
    """
    if one_process(master) or _PROCESSES.fullmatch(master) or _OTHER.fullmatch(master):
        return
    addresses = _addresses(master)
    if not addresses:
        raise BadInput(f"--spark-master: {master[:80]!r}; allowed: {_ALLOWED}")
    problems = [_problem(*address) for address in addresses]
    if all(problems):
        raise HarnessError(f"--spark-master: {master[:80]} does not answer: {'; '.join(problems)}")


def one_process(master: str) -> bool:
    """Return whether the driver executes the tasks itself, so that no executor can be lost."""
    return _ONE_PROCESS.fullmatch(master) is not None


def elsewhere(master: str) -> bool:
    """Return whether executors run in other network namespaces or on other machines, as far as the URL tells it."""
    if _OTHER.fullmatch(master):
        return True
    return any(not _loopback(host) for host, _ in _addresses(master))


def address_towards(master: str) -> str:
    """Return the address of this machine from which it reaches a standalone master; empty for any other master."""
    for host, port in _addresses(master):
        with suppress(OSError), socket.create_connection((host, int(port)), timeout=_ANSWER_DEADLINE_S) as connection:
            return str(connection.getsockname()[0])
    return ""


def _addresses(master: str) -> list[tuple[str, str]]:
    """Return host and port of each address of a standalone master."""
    standalone = _STANDALONE.fullmatch(master)
    pairs = (address.rsplit(":", 1) for address in standalone[1].split(",")) if standalone else ()
    return [(host, port) for host, port in pairs]


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _problem(host: str, port: str) -> str:
    """Return why no connection can be made to a host, or an empty string."""
    try:
        socket.create_connection((host, int(port)), timeout=_ANSWER_DEADLINE_S).close()
    except (OSError, OverflowError, UnicodeError) as error:  # a port above 65535, or a host name that cannot be one
        return str(getattr(error, "strerror", None) or error)
    return ""
