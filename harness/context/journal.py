"""The journal of requests: what the clients of the workers asked the brokers for, and what they were told.

The request proxy reports each request of these APIs, with its response: Produce, OffsetCommit, OffsetFetch, JoinGroup,
SyncGroup, InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, TxnOffsetCommit and ConsumerGroupHeartbeat. Of
the Fetch requests, it reports the first one of each connection, without the response.

    tables/requests.parquet    one row for each request (`harness/record/tables.py`)
"""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from onceproof.harness.base.errors import HarnessError
from onceproof.harness.cluster import topology
from onceproof.harness.record.tables import REQUESTS

_ASKED_MAX = 3
_REPORTED = ("request", "response")
# What the request proxy reports of a request that waits at a phase of its transaction.
AT_PHASES = ("stopped", "went-on")
# All that it reports of the clients themselves, apart from their requests and the responses.
OF_CLIENTS = (*AT_PHASES, "closed")


class Journal:
    """The requests of one run, in memory until they are written. It is safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: list[dict[str, Any]] = []
        self._waiting: dict[tuple[str, int, int], dict[str, Any]] = {}

    def takes(self, event: Mapping[str, Any]) -> bool:
        """Add an event of the request proxy. Returns False if it is about a rule, and so is not for the journal."""
        if event["event"] not in _REPORTED:
            return False
        with self._lock:
            if event["event"] == "request":
                self._asked(event)
            elif event["event"] == "response":
                row = self._waiting.pop(_key(event), None)
                if row is not None:
                    row |= {"answered": event["at"], "response": event["body"]}
        return True

    def _asked(self, event: Mapping[str, Any]) -> None:
        row = {name: event.get(name) for name in REQUESTS.columns}
        row |= {
            "worker": topology.worker_of_link(event["link"]),
            "request": event["body"],
            "response": None,
            "answered": None,
        }
        self._rows.append(row)
        self._waiting[_key(event)] = row

    def write(self, target: Path, names: Mapping[str, str]) -> int:
        """Write the table of all requests so far; return their number.

        `names` maps the ids of topics to their names. Newer versions of requests have only the id.
        """
        with self._lock:
            rows = [_as_json(row, names) for row in sorted(self._rows, key=lambda row: float(row["at"]))]
        pq.write_table(pa.Table.from_pylist(rows, REQUESTS.arrow), target)
        return len(rows)


def _as_json(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    told = {each: json.dumps(named(row[each], names)) for each in ("request", "response") if row[each] is not None}
    return {**row, **told}


def named(body: Any, names: Mapping[str, str]) -> Any:
    """Return a body in which whatever has the id of a topic has its name as well."""
    if isinstance(body, list):
        return [named(each, names) for each in body]
    if not isinstance(body, dict):
        return body
    whole = {key: named(each, names) for key, each in body.items()}
    known = names.get(whole.get("topicId", ""))
    if known is None:
        return whole
    return {**whole, **({"topic": known} if "partition" in whole else {"name": known})}


class TopicNames:
    """The names of topics by their ids, which are asked for again when a body has an id that is not known.

    An application may make topics while it runs.
    """

    def __init__(self, ask: Callable[[], Mapping[str, str]]) -> None:
        self._ask = ask
        self._names: Mapping[str, str] = {}
        self._unknown: Counter[str] = Counter()

    def named(self, body: Any) -> Any:
        """Return a body as the function `named` does. An id that stays unknown is asked for three times."""
        new = {each for each in _ids(body) if each not in self._names and self._unknown[each] < _ASKED_MAX}
        if new:
            self._unknown.update(new)
            with suppress(HarnessError):
                self._names = self._ask()
        return named(body, self._names)


def _ids(body: Any) -> Iterator[str]:
    """Yield the ids of topics in a body."""
    for each in body.values() if isinstance(body, dict) else body if isinstance(body, list) else ():
        yield from _ids(each)
    if isinstance(body, dict) and body.get("topicId"):
        yield body["topicId"]


def _key(event: Mapping[str, Any]) -> tuple[str, int, int]:
    return event["link"], event["connection"], event["correlation"]
