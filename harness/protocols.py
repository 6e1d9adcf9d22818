"""What the harness asks of a fault and of a workload. Small on purpose; what a fault *can* do more is its own protocol.

A fault is setup / inject / heal, in the manner of Jepsen's nemesis: `inject` does it and returns what undoes it.
A workload is data: where records go, what one input gives, and what is right about it, as Spark SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

if TYPE_CHECKING:
    from harness.field import Field
    from harness.plan import PlannedFault
    from harness.scenario import FaultSpec

Undo = Callable[[], None]
Event = Mapping[str, Any]


class Fault(Protocol):
    """One way to break things. `name` is the key in a scenario, `params` what it may say."""

    name: ClassVar[str]
    about: ClassVar[str]
    params: ClassVar[type[FaultSpec]]

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        """Break it now; return what undoes it. Undoing twice must be harmless."""
        ...


@runtime_checkable
class Lasting(Protocol):
    """A fault that knows itself when it is over, instead of after `lasts_s`."""

    def hold(self, field: Field, fault: PlannedFault) -> None:
        """Return when the fault should be undone. Raises DeadlineError when that never comes."""
        ...


@runtime_checkable
class Witness(Protocol):
    """A fault that must have had an effect for a green run to mean anything."""

    def missing(self, fault: PlannedFault, events: Sequence[Event]) -> str | None:
        """What should have happened and did not, from the history alone; None when it did."""
        ...


@dataclass(frozen=True, kw_only=True)
class Source:
    """One input record as a worker polled it. `key` and `value` are bytes, `offset` is its place in the log."""

    partition: int
    offset: int
    key: bytes
    value: bytes


@dataclass(frozen=True, kw_only=True)
class Output:
    """One output record: `topic` is the workload's own name for it (`output`), not the name on the cluster."""

    topic: str
    partition: int
    key: bytes
    value: bytes


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A pipeline and what is right about it.

    `expected` is Spark SQL over the view `inputs(partition, offset, number, digest, input)`, one row an input, giving
    one row an output: `topic, partition, number, digest, input`. `input` is passed on untouched: it says which input an
    output comes from. The two switches are what the negative controls turn.
    """

    name: str
    about: str
    transform: Callable[[Source], Iterable[Output]]
    expected: str
    topics: tuple[str, ...] = ("output",)
    transactional: bool = True
    seek_back: bool = True
    rows: tuple[str, ...] = field(default=())
