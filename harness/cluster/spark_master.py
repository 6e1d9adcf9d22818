"""Ask the master of a Spark cluster in containers how many workers it has, and whether anybody uses it."""

import json
import urllib.request
from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

LABEL = "io.onceproof.spark"  # of each of its containers: the URL of the master
_UI_PORT = 8080
_ANSWER_S = 5.0


def workers(master: str) -> int:
    """Return how many workers the master says are alive. Raises OSError when it does not answer."""
    return int(_state(master)["aliveworkers"])


def used(containers: Iterable[Any]) -> bool:
    """Return whether a process has executors in a cluster of these containers. A master that is silent has none."""
    for master in {each.labels[LABEL] for each in containers if LABEL in each.labels}:
        with suppress(OSError, ValueError):
            return bool(_state(master)["activeapps"])
    return False


def _state(master: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://{urlsplit(master).hostname}:{_UI_PORT}/json/", timeout=_ANSWER_S) as answer:
        found: dict[str, Any] = json.load(answer)
        return found
