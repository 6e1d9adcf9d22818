"""Compute what several checks need once for each verdict."""

from collections.abc import Callable
from functools import partial, wraps
from threading import RLock
from typing import Any, Protocol, TypeVar

from onceproof.verifiers.evidence.time_limit import computed


class _Holder(Protocol):
    """What keeps the results: `Facts` and `Tables`."""

    results: dict[Any, Any]
    locks: dict[Any, RLock]


Held = TypeVar("Held", bound=_Holder)
Result = TypeVar("Result")


def cached(function: Callable[[Held], Result]) -> Callable[[Held], Result]:
    """Compute a function of the tables once for each Tables, since several checks call it in threads of their own.

    Cached functions must not call each other in a circle: two threads would then wait for each other forever.
    """

    @wraps(function)
    def once(tables: Held) -> Result:
        with tables.locks.setdefault(function, RLock()):
            if function not in tables.results:  # speed
                tables.results[function] = computed(partial(function, tables))
            found: Result = tables.results[function]()
            return found

    return once
