"""The bases of all events, and the types of their keys."""

import json
from functools import cache
from typing import Annotated, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field

# JSON has no tuples; a list of this length is read as one.
Range = Annotated[tuple[int, int], Field(strict=False)]
Placed = Annotated[tuple[int, int, int], Field(strict=False)]
# The number of an event among those of its process.
Number = Annotated[int, Field(ge=1, lt=1 << 62)]
Scalar = str | int | float | bool | None


@cache
def _shared(names: frozenset[str]) -> set[str]:
    return set(names)


class Event(BaseModel):
    """The base of all events.

    `kind` is the value of the key `event` in the history, `at` the time of arrival (s), and `source` the reporter.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: ClassVar[str] = ""
    at: float = 0.0
    source: str = ""

    def to_json(self) -> str:
        """Return the event as a line of the history without a line break; keys that were never set are omitted."""
        keys = self.model_dump(mode="json", exclude_unset=True)
        head = {"at": keys.pop("at", 0.0), "source": keys.pop("source", ""), "event": self.kind}
        return json.dumps({**head, **keys}, separators=(",", ":"))

    def slim(self) -> Self:
        """Share the names of the keys that were set with other events, since a run may have a million events."""
        object.__setattr__(self, "__pydantic_fields_set__", _shared(frozenset(self.model_fields_set)))
        return self

    @property
    def worker(self) -> int:
        """The number of the worker that reported the event. Raises ValueError for any other source."""
        return int(self.source.removeprefix("worker-"))


class ProcessEvent(Event):
    """An event that a process of the run reported.

    `n` numbers the events that a process reported itself, from 1; it is None for events that the harness reports of a
    process. `t` is CLOCK_MONOTONIC in seconds, read by the process. `incarnation` numbers the processes of a worker
    from 1; it is None for other processes.
    """

    n: Number | None = None
    t: float = 0.0
    incarnation: int | None = None

    @property
    def process(self) -> tuple[str, int | None]:
        """The process that reported the event: its source and incarnation."""
        return self.source, self.incarnation


class WorkerEvent(ProcessEvent):
    """An event that a worker reported."""

    incarnation: int


class FaultEvent(Event):
    """An event about a fault; `fault` is the id of the fault in the plan."""

    fault: str
