"""F17: faults drawn from a seed, several at once.

    [random]
    periods = 2          # of period_s each
    period_s = 30

Each period gets a set of one to three faults, or none (one period in four): a pipeline that is left alone must be
right, too. A set takes at most one node away, so that what is left can go on, and hits no worker twice. What a fault
draws is its own affair (`draw`); a fault without it is never drawn.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from onceproof.harness.model import registry
from onceproof.harness.model.spec import FaultSpec, RandomSpec, WorkloadSpec

_FREE = 0.25
_SET_MAX = 3
_EARLIEST_S, _LATEST_S = 2.0, 12.0


@dataclass
class Chance:
    """What a fault may choose from in one period. `worker` and `node` may be asked once a fault; None: none is left."""

    dice: random.Random
    topics: tuple[str, ...]
    partitions: int
    at_s: float
    workers: list[int]
    nodes: list[str] = field(default_factory=list)

    def worker(self) -> int | None:
        """A worker that nothing hits in this period."""
        return self.workers.pop(self.dice.randrange(len(self.workers))) if self.workers else None

    def node(self) -> str | None:
        """The role of a node, when no other fault takes one away in this period."""
        if not self.nodes:
            return None
        role = self.dice.choice(self.nodes)
        self.nodes.clear()
        return role

    def seconds(self, low: float, high: float) -> float:
        return round(self.dice.uniform(low, high), 1)


def faults(periods: RandomSpec, work: WorkloadSpec, dice: random.Random) -> Iterator[FaultSpec]:
    """The faults of a scenario's random periods, in their order."""
    topics = registry.workload(work.name).topics
    drawable = _drawable()
    for period in range(periods.periods):
        if dice.random() < _FREE:
            continue
        begins = period * periods.period_s
        chance = Chance(
            dice=dice,
            topics=topics,
            partitions=work.partitions,
            at_s=0.0,
            workers=list(range(work.workers)),
            nodes=_roles(topics, work.partitions, work.workers),
        )
        for name in dice.sample(sorted(drawable), dice.randint(1, _SET_MAX)):
            chance.at_s = round(begins + dice.uniform(_EARLIEST_S, _LATEST_S), 1)
            keys = drawable[name](chance)
            if keys is not None:
                start = {} if "when" in keys else {"at_s": chance.at_s}
                yield registry.fault(name).params.model_validate({"name": name, **start, **keys})


def _drawable() -> Mapping[str, Callable[[Chance], Mapping[str, Any] | None]]:
    """The faults that can be drawn (`harness.context.fault.Drawn`): name → what draws its keys."""
    draws = {name: getattr(registry.fault(name), "draw", None) for name in registry.names("fault")}
    return {name: draw for name, draw in draws.items() if draw is not None}


def _roles(topics: tuple[str, ...], partitions: int, workers: int) -> list[str]:
    """A node by what it does: any of these hits somebody's path."""
    return [
        *(f"broker-{number}" for number in (1, 2, 3)),
        "controller-leader",
        "group-coordinator",
        *(f"transaction-coordinator:worker-{worker}" for worker in range(workers)),
        *(f"leader:{topic}/{partition}" for topic in ("input", *topics) for partition in range(partitions)),
    ]
