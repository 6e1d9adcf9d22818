"""Refuse a Spark master that is none, or that does not answer, before Spark is started with it."""

import re
import socket

from onceproof.harness.base.errors import BadInput

_NUMBER = "[1-9][0-9]{0,3}"
_LOCAL = re.compile(rf"local(\[({_NUMBER}|\*)(,{_NUMBER})?\])?|local-cluster\[{_NUMBER},{_NUMBER},[1-9][0-9]{{2,6}}\]")
_STANDALONE = re.compile(r"spark://([^/,\s:]+:[0-9]{1,5}(?:,[^/,\s:]+:[0-9]{1,5})*)")
_OTHER = re.compile(r"yarn|k8s://\S+")
_ALLOWED = "local, local[N], local[*], local-cluster[WORKERS,CORES,MiB], spark://HOST:PORT, yarn, k8s://URL"
_ANSWER_DEADLINE_S = 5.0


def check(master: str) -> None:
    """Raise BadInput when `master` is not a Spark master, or when no host of a standalone master accepts a connection.

    A host has five seconds.
    """
    if _LOCAL.fullmatch(master) or _OTHER.fullmatch(master):
        return
    standalone = _STANDALONE.fullmatch(master)
    if standalone is None:
        raise BadInput(f"--spark-master: {master[:80]!r}; allowed: {_ALLOWED}")
    problems = [_problem(*address.rsplit(":", 1)) for address in standalone[1].split(",")]
    if all(problems):
        raise BadInput(f"--spark-master: {master[:80]} does not answer: {'; '.join(problems)}")


def _problem(host: str, port: str) -> str:
    """Return why no connection can be made to a host, or an empty string."""
    try:
        socket.create_connection((host, int(port)), timeout=_ANSWER_DEADLINE_S).close()
    except (OSError, OverflowError, UnicodeError) as error:  # a port above 65535, or a host name that cannot be one
        return str(getattr(error, "strerror", None) or error)
    return ""
