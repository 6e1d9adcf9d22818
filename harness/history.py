"""The history of a run: what workers and nemesis did and saw, one JSON object a line, in the order of arrival.

Every event has `at` (the harness's CLOCK_MONOTONIC, seconds) and `source` (`worker-0`, `nemesis`, `harness`, …);
what a process of ours reports has its own clock's `t` too, and its incarnation. The first line is the header with
`schema_version` and the wall-clock time that belongs to an `at`.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

from harness.errors import BadInput, DeadlineError

SCHEMA_VERSION = 1
Event = dict[str, Any]


class History:
    """Appends to history.jsonl; whoever waits for an event is woken by it. Safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._changed = threading.Condition()
        self._events: list[Event] = []
        self._listeners: list[Callable[[Event], None]] = []
        self.append("harness", "history", schema_version=SCHEMA_VERSION, wall=datetime.now(UTC).isoformat())

    def append(self, source: str, event: str, **fields: Any) -> Event:
        entry = {"at": round(time.monotonic(), 6), "source": source, "event": event, **fields}
        line = json.dumps(entry, separators=(",", ":"))
        with self._changed:
            if self._file.closed:
                return entry
            self._file.write(line + "\n")
            self._file.flush()
            self._events.append(entry)
            self._changed.notify_all()
        for listener in self._listeners:
            listener(entry)
        return entry

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Call `listener` with each further event, in the thread that reports it."""
        self._listeners.append(listener)

    def events(self) -> list[Event]:
        with self._changed:
            return list(self._events)

    def wait(self, what: str, match: Callable[[Event], bool], *, deadline_s: float, since: int = 0,
             abort: Callable[[], bool] = lambda: False) -> Event:  # fmt: skip
        """The first event that matches, from index `since` on. Raises DeadlineError, at once when `abort` says so."""
        deadline = time.monotonic() + deadline_s
        index = since
        with self._changed:
            while True:
                while index < len(self._events):
                    if match(self._events[index]):
                        return self._events[index]
                    index += 1
                left = deadline - time.monotonic()
                if left <= 0 or abort():
                    raise DeadlineError(f"waited {deadline_s:g} s for {what}, which did not come")
                self._changed.wait(min(left, 0.5))

    def close(self) -> None:
        with self._changed:
            self._file.close()


def read(path: Path) -> list[Event]:
    """All events of a history file. Raises BadInput when it is missing, cut in the middle of a line, or not ours."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; a run's folder has a history.jsonl") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None
    events = list(_parse(text, path))
    if not events or events[0].get("schema_version") != SCHEMA_VERSION:
        raise BadInput(f"{path}: line 1: expected a header with schema_version {SCHEMA_VERSION}")
    return events


def met(target: Mapping[str, Any], since: float, events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The errors that a worker met from then to the outcome of its next transaction. `target` is the fault-target event
    that names its role and incarnation."""
    worker = target["role"], target["incarnation"]
    mine = (e for e in events if (e["source"], e.get("incarnation")) == worker and e["at"] > since)
    return [event for event in takewhile(lambda event: event["event"] != "outcome", mine) if event["event"] == "error"]


def says(error: Mapping[str, Any]) -> str:
    """An error in a few words: the call, its name as the client spells it, and whether the producer is done for."""
    return f"{error['call']}: {error['code']}{' (fatal)' if error['fatal'] else ''}"


def _parse(text: str, path: Path) -> Iterator[Event]:
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if number == len(lines):
            if line:
                raise BadInput(f"{path}: line {number}: cut off in the middle of a line: {line[:60]}")
            return
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            raise BadInput(f"{path}: line {number}: not JSON: {line[:60]}") from None
        if not isinstance(event, dict) or "event" not in event or "at" not in event:
            raise BadInput(f"{path}: line {number}: expected an object with event and at")
        yield event
