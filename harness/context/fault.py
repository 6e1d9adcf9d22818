"""The protocols of a fault. `Fault` is required; each further protocol is an optional ability.

    class Flood:
        name: ClassVar = "flood"
        about: ClassVar = "a topic is flooded with records that no worker wrote"
        params: ClassVar = FloodSpec                    # a FaultSpec with the fault's own keys

        def inject(self, context: FaultContext, fault: PlannedFault[FloodSpec]) -> Undo:
            ...                                         # inject the fault
            return lambda: None                         # undoes the fault

`inject` returns the function that undoes the fault. A fault object holds no state of a run; anything that a fault needs
between its injection and its end belongs to the undo that `inject` returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from onceproof.harness.context.context import FaultContext
from onceproof.harness.model import registry
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.model.spec import FaultSpec
from onceproof.harness.model.system import Capability
from onceproof.harness.record.history import Events

Spec = TypeVar("Spec", bound=FaultSpec)
SpecIn = TypeVar("SpecIn", bound=FaultSpec, contravariant=True)


class Undo(Protocol):
    """A callable that undoes a fault. It must be idempotent."""

    def __call__(self) -> object:
        """Undo the fault."""
        ...


UndoIn = TypeVar("UndoIn", bound=Undo, contravariant=True)


class Fault(Protocol[Spec]):
    """A kind of fault that a scenario can name. Every fault implements this protocol."""

    @property
    def name(self) -> str:
        """The name of the fault in a scenario."""
        ...

    @property
    def about(self) -> str:
        """A description of one line, for lists of faults."""
        ...

    @property
    def params(self) -> type[Spec]:
        """The model of the fault's keys in a scenario."""
        ...

    def inject(self, context: FaultContext, fault: PlannedFault[Spec]) -> Undo:
        """Inject the fault now, and return the function that undoes it.

        A DeadlineError means that the fault's target never appeared, and makes the run vacuous. Any other exception
        makes the verdict `unknown: harness-error`.
        """
        ...


@runtime_checkable
class SelfTimed(Protocol[SpecIn, UndoIn]):
    """A fault that decides itself when it ends, instead of ending after `lasts_s`."""

    def hold(self, context: FaultContext, fault: PlannedFault[SpecIn], undo: UndoIn, /) -> None:
        """Block until the fault is to be undone; `undo` is the value that `inject` returned.

        Raises DeadlineError when the awaited condition does not occur.
        """
        ...


@runtime_checkable
class Witness(Protocol[SpecIn]):
    """A fault that must have had an observable effect, or else the run is vacuous."""

    def missing(self, fault: PlannedFault[SpecIn], events: Events) -> str | None:
        """Return the effect that the history does not show, in words, or None when the fault had its effect."""
        ...


@runtime_checkable
class Wired(Protocol[SpecIn]):
    """A fault on single requests, which need to pass through the request proxy."""

    def wired(self, spec: SpecIn) -> list[str]:
        """Return the links that must be routed through the request proxy before the workload starts."""
        ...


@runtime_checkable
class Prepared(Protocol[SpecIn]):
    """A fault that needs something that takes long to get: an image, or jars."""

    def prepare(self, spec: SpecIn) -> None:
        """Build or download it, before the workload starts, so that the fault strikes when it begins.

        Raises BadInput when there is no such thing, and HarnessError when it cannot be had.
        """
        ...


@runtime_checkable
class Drawn(Protocol):
    """A fault that the table `[random]` of a scenario can draw from the seed."""

    def draw(self, chance: Chance, /) -> Mapping[str, Any] | None:
        """Return the fault's keys without `name`, or None when the period has no target left for it.

        The fault starts at `chance.at_s` unless the keys contain `when`.
        """
        ...


class NeedsCapabilities(Protocol):
    """A fault that needs capabilities of the system (`harness/model/system.py`).

    A scenario is refused when its system does not have them.
    """

    @property
    def needs(self) -> frozenset[Capability]:
        """The capabilities that the fault needs."""
        ...


def fault(name: str) -> Fault[Any]:
    """Return a fault by its registered name or as `FILE.py:NAME`. Raises BadInput when there is none."""
    return cast("Fault[Any]", registry.fault(name))
