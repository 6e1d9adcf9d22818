"""The protocols of a fault. `Fault` is all that a fault must have; each further thing that it can do is a protocol.

    class Flood:
        name: ClassVar = "flood"
        about: ClassVar = "a topic is flooded with records of nobody"
        params: ClassVar = FloodSpec                    # a FaultSpec with the fault's own keys

        def inject(self, context: FaultContext, fault: PlannedFault[FloodSpec]) -> Undo:
            ...                                         # break it
            return lambda: None                         # what undoes it

As with Jepsen's nemesis, breaking returns what mends; a fault object holds no state of a run. What a fault needs from
`inject` until its end is in the undo that it returns.
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
    """Undoes a fault. Undoing twice must be harmless."""

    def __call__(self) -> object:
        """Undo it."""
        ...


UndoIn = TypeVar("UndoIn", bound=Undo, contravariant=True)


class Fault(Protocol[Spec]):
    """One way to break things. `name` is its name in a scenario, `about` one line for lists, `params` the model of its
    keys."""

    @property
    def name(self) -> str:
        """The fault's name."""
        ...

    @property
    def about(self) -> str:
        """What it is, in one line."""
        ...

    @property
    def params(self) -> type[Spec]:
        """The model of its keys in a scenario."""
        ...

    def inject(self, context: FaultContext, fault: PlannedFault[Spec]) -> Undo:
        """Break it now; return what undoes it. Raises DeadlineError when what it is aimed at never appears (the run is
        then vacuous); any other exception makes the run `unknown: harness-error`."""
        ...


@runtime_checkable
class SelfTimed(Protocol[SpecIn, UndoIn]):
    """A fault that ends by itself and not after `lasts_s`."""

    def hold(self, context: FaultContext, fault: PlannedFault[SpecIn], undo: UndoIn, /) -> None:
        """Return when the fault is to be undone. `undo` is what `inject` returned. Raises DeadlineError when that never
        comes."""
        ...


@runtime_checkable
class Witness(Protocol[SpecIn]):
    """A fault that must have had an effect for a green run to mean anything."""

    def missing(self, fault: PlannedFault[SpecIn], events: Events) -> str | None:
        """What should have happened and did not, from the history alone; None when it did."""
        ...


@runtime_checkable
class Wired(Protocol[SpecIn]):
    """A fault on single requests, which needs the request proxy in their way."""

    def wired(self, spec: SpecIn) -> list[str]:
        """The links that must lead through it before work begins."""
        ...


@runtime_checkable
class Drawn(Protocol):
    """A fault that a seed can draw (`[random]` of a scenario)."""

    def draw(self, chance: Chance, /) -> Mapping[str, Any] | None:
        """The fault's keys, without `name`; None when the period has nothing left for it. It begins at the period's
        `at_s` unless the keys say `when`."""
        ...


class NeedsCapabilities(Protocol):
    """A fault that only some systems can be given (`harness/model/system.py`). A scenario that names another system is
    refused."""

    @property
    def needs(self) -> frozenset[Capability]:
        """The capabilities that it needs."""
        ...


def fault(name: str) -> Fault[Any]:
    """A fault by name or as FILE.py:NAME. Raises BadInput when there is none."""
    return cast("Fault[Any]", registry.fault(name))
