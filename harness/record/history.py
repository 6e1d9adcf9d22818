"""The history of a run: the events of all its processes in the order of arrival, one JSON object per line.

    history.append("nemesis", FaultInjected(fault="0-kill", name="kill"))
    history.events().first(FaultTarget, fault="0-kill")

`harness/record/events.py` defines the kinds of events. The first line is a header with the `schema_version` of the
history and the wall-clock time of its `at`.
"""

import heapq
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TypeVar, cast

from onceproof.harness.base import files
from onceproof.harness.base.errors import BadInput, DeadlineError, HarnessError
from onceproof.harness.record.events import (
    ClientFailed,
    Event,
    FaultTarget,
    HistoryBegins,
    Invoked,
    Outcome,
    ProcessEvent,
    parse,
)

SCHEMA_VERSION = 3
_TEXTS = ("text", "reason")
_BYTES_MAX = 4_000_000_000  # a run of a hundred million records has less
E = TypeVar("E", bound=Event)


class Events(tuple[Event, ...]):
    """The events of a history in the order of arrival. They can be queried by kind and by the values of keys."""

    def of(self, kind: type[E], **keys: object) -> list[E]:
        """Return all events of a kind, or of a kind derived from it, whose keys have these values."""
        return list(self._of(kind, keys))

    def first(self, kind: type[E], **keys: object) -> E | None:
        """Return the first of the events that `of` returns, or None if there is none."""
        return next(self._of(kind, keys), None)

    def the(self, kind: type[E], **keys: object) -> E:
        """Return the first of the events that `of` returns. Raises LookupError if there is none."""
        found = self.first(kind, **keys)
        if found is None:
            raise LookupError(f"the history has no {kind.__name__} with {keys}")
        return found

    def _of(self, kind: type[E], keys: dict[str, object]) -> Iterator[E]:
        """Yield the events that `of` returns."""
        found = [indexes for each, indexes in self._indexes.items() if issubclass(each, kind)]
        for index in found[0] if len(found) == 1 else heapq.merge(*found):
            event = cast(E, self[index])
            if _has(event, keys):
                yield event

    @cached_property
    def _indexes(self) -> dict[type[Event], list[int]]:
        """The indexes of the events of each class, of which a verdict asks for some at a time."""
        found: defaultdict[type[Event], list[int]] = defaultdict(list)
        for index, event in enumerate(self):
            found[type(event)].append(index)
        return found

    def errors_met(self, target: FaultTarget, since: float) -> list[ClientFailed]:
        """Return a worker's client errors after `since`, up to the outcome of its next transaction.

        `target` is the event that names the worker and its incarnation; `since` is a time as in `Event.at`.
        """
        found = []
        for each in self:
            if not isinstance(each, ProcessEvent) or each.process != (target.role, target.incarnation):
                continue
            if each.at > since and isinstance(each, Outcome):
                break
            if each.at > since and isinstance(each, ClientFailed):
                found.append(each)
        return found


def _has(event: Event, keys: dict[str, object]) -> bool:
    return all(getattr(event, key) == value for key, value in keys.items())


class History:
    """Appends events to history.jsonl and wakes threads that wait for one. It is safe to use from several threads.

    If the file cannot be written any more, as on a full disk, the threads that append go on. The events are then only
    in memory, and `lost` is the error with which the run must end, since a history with a gap proves nothing.
    """

    def __init__(self, path: Path, redact: Callable[[str], str] = str) -> None:
        """Begin a history. `redact` is applied to the texts of events that may quote a client or an exception."""
        self._redact = redact
        self._path, self._file = path, path.open("ab", buffering=0)
        self._broken = self._forgotten = False
        self.lost: HarnessError | None = None
        self._when_lost: Callable[[HarnessError], None] = lambda _: None
        self._changed = threading.Condition()
        self._events: list[Event] = []
        self._listeners: list[Callable[[Event], None]] = []
        self.append("harness", HistoryBegins(schema_version=SCHEMA_VERSION, wall=datetime.now(UTC).isoformat()))

    def append(self, source: str, event: E) -> E:
        """Write an event with its `source` and the time `at`, and return it as written.

        Events are not written after `close`.
        """
        texts = {key: self._redact(value) for key in _TEXTS if isinstance(value := getattr(event, key, None), str)}
        entry = event.model_copy(update={"at": round(time.monotonic(), 6), "source": source, **texts}).slim()
        with self._changed:
            if self._file.closed:
                return entry
            if not self._broken:
                self._write(entry.to_json().encode() + b"\n")
            if not self._forgotten:
                self._events.append(entry)
            self._changed.notify_all()
        for listener in self._listeners:
            listener(entry)
        return entry

    def _write(self, line: bytes) -> None:
        """Write a line whole or not at all, so that the file can be read afterwards."""
        end = self._file.tell()
        try:
            while line:  # a disk that is almost full takes a part of it
                line = line[self._file.write(line) :]
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(end)
                self._file.seek(end)
            self._broken = True
            self.lost = self.lost or HarnessError(f"{self._path}: cannot be written: {error.strerror}")
            self._when_lost(self.lost)

    def when_lost(self, tell: Callable[[HarnessError], None]) -> None:
        """Call `tell` when an event cannot be written, at once if that has happened already."""
        with self._changed:
            self._when_lost = tell
            if self.lost is not None:
                tell(self.lost)

    def resume(self) -> None:
        """Write events again after room was made on the disk. The events in between are only in memory."""
        with self._changed:
            self._broken = False

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Call `listener` with each later event, in the thread that appends it."""
        self._listeners.append(listener)

    def events(self) -> Events:
        """Return all events so far."""
        with self._changed:  # nothing is appended while the file is read
            return read(self._path) if self._forgotten else Events(self._events)

    def forget(self) -> None:
        """Keep the events in the file only, if it has all of them. Nothing may wait for an event from now on."""
        with self._changed:
            if self.lost is None:
                self._events, self._forgotten = [], True

    def __len__(self) -> int:
        with self._changed:
            return len(self._events)

    def wait(
        self,
        what: str,
        kind: type[E] | tuple[type[E], ...],
        match: Callable[[E], bool] = lambda _: True,
        *,
        deadline_s: float,
        since: int = 0,
        abort: Callable[[], None] = lambda: None,
    ) -> E:
        """Wait for the first event of a kind that matches, from index `since` on.

        `abort` is called every half second, and an exception that it raises ends the wait. Raises DeadlineError after
        `deadline_s` seconds; its message names the event as `what`.
        """
        deadline = time.monotonic() + deadline_s
        index = since
        with self._changed:
            while True:
                while index < len(self._events):
                    event = self._events[index]
                    if isinstance(event, kind) and match(event):
                        return event
                    index += 1
                left = deadline - time.monotonic()
                abort()
                if left <= 0:
                    raise DeadlineError(f"waited {deadline_s:g} s for {what}, which did not occur")
                self._changed.wait(min(left, 0.5))

    def close(self) -> None:
        """Close the file. This call is idempotent."""
        with self._changed:
            self._file.close()


def read(path: Path) -> Events:
    """Read all events of a history file.

    Raises BadInput, with the file, the line and the key, when the file is missing, ends in the middle of a line, is of
    another schema version, or has an invalid event.
    """
    try:
        return Events(_parse(files.lines_of(path, bytes_max=_BYTES_MAX), str(path)))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; a run folder has a history.jsonl") from None


def _parse(lines: Iterable[str], where: str) -> Iterator[Event]:
    number = 0
    called: dict[str, Invoked] = {}
    for number, line in enumerate(lines, 1):
        place = f"{where}: line {number}"
        if not line.endswith("\n"):
            raise BadInput(f"{place}: cut off in the middle of a line: {line[:60]}")
        try:
            raw = json.loads(line)
        except (ValueError, RecursionError):
            raise BadInput(f"{place}: not JSON: {line.rstrip()[:60]}") from None
        if not isinstance(raw, dict):
            raise BadInput(f"{place}: expected an object with event and at")
        if number == 1 and (raw.get("event"), raw.get("schema_version")) != (HistoryBegins.kind, SCHEMA_VERSION):
            raise BadInput(f"{place}: expected a header with schema_version {SCHEMA_VERSION}")
        try:
            event = parse(raw)
        except ValueError as error:
            raise BadInput(f"{place}: {error}") from None
        if isinstance(event, Invoked):
            called[event.source] = event
        elif isinstance(event, Outcome) and (call := called.pop(event.source, None)):
            event = event.sharing(call)
        yield event
    if not number:
        raise BadInput(f"{where}: line 1: expected a header with schema_version {SCHEMA_VERSION}")
