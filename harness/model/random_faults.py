"""Draws the faults of a scenario's table `[random]` from the seed.

    [random]
    periods = 2
    period_s = 30        # seconds per period

Each period has a set of one to three faults, or none in one case of four, because a pipeline without faults must be
correct, too. A set affects at most one node, so that the other nodes can continue, and no worker more than once. Each
fault draws its own keys (`draw`); a fault without that method is never drawn.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from onceproof.harness.model import agreement, registry
from onceproof.harness.model.databases import POSTGRESQL
from onceproof.harness.model.scenario import Scenario
from onceproof.harness.model.spec import FaultSpec, WorkloadSpec
from onceproof.harness.model.workload import Workload

_IDLE_SHARE = 0.25  # the share of periods without a fault
_SET_MAX = 3
_EARLIEST_S, _LATEST_S = 2.0, 12.0
_TRANSACTIONS_PER_S = 2  # a low estimate of a worker's rate
_EXPIRES_MS = 40_000


@dataclass
class Chance:
    """The choices of the faults of one period. A fault calls `worker` and `node` at most once each.

    `scenario`      the scenario
    `dice`          the random generator of the plan
    `workload`      the pipeline
    `partitions`    the number of partitions of each topic
    `at_s`          the start of the fault, in seconds after the first inputs were sent
    `workers`       the workers that no fault of this period affects yet
    `nodes`         the roles of nodes to choose from; empty once a fault of this period affects a node
    `drawn`         the role of that node
    `hit_workers`   whether a fault of this period affects a worker
    """

    scenario: Scenario
    dice: random.Random
    workload: Workload
    partitions: int
    at_s: float
    workers: list[int]
    nodes: list[str] = field(default_factory=list)
    drawn: str | None = None
    hit_workers: bool = False

    @property
    def topics(self) -> tuple[str, ...]:
        """The workload's own names of the topics that the workers write."""
        return self.workload.topics

    @property
    def epochs(self) -> bool:
        """Whether each worker has a transactional id, so that a zombie can be fenced by its epoch."""
        return _each_worker_has_an_id(self.workload)

    @property
    def expires(self) -> bool:
        """Whether a fault can wait until a transaction has timed out."""
        return self.scenario.workload.transaction_timeout_ms <= _EXPIRES_MS

    @property
    def early(self) -> bool:
        """Whether the period is the first. In later ones a worker may reach a transaction before the period begins."""
        return self.at_s <= _LATEST_S

    @property
    def grouped(self) -> bool:
        """Whether a consumer group assigns the partitions, so that others get those of a worker that is late."""
        return self.workload.wiring.assignment == "group"

    def worker(self) -> int | None:
        """Draw a worker that no other fault of this period affects; None if there is none."""
        if not self.workers:
            return None
        self.hit_workers = True
        return self.workers.pop(self.dice.randrange(len(self.workers)))

    def node(self, matches: Callable[[str], bool] = lambda _: True) -> str | None:
        """Draw the role of a node that matches; None if another fault of this period affects a node."""
        roles = [role for role in self.nodes if matches(role)]
        if not roles:
            return None
        self.drawn = self.dice.choice(roles)
        self.nodes.clear()
        return self.drawn

    def transaction(self) -> int:
        """Return the number of the transaction that a worker has reached when the fault starts, roughly."""
        return max(1, round(self.at_s * _TRANSACTIONS_PER_S))

    def at(self, worker: int, phase: str) -> dict[str, Any]:
        """Return the key `when` of a fault that starts at a phase of a worker's transaction."""
        return {"worker": worker, "phase": phase, "count": self.transaction()}

    def seconds(self, low: float, high: float) -> float:
        """Draw a duration in seconds between `low` and `high`, in steps of 0.1 s."""
        return round(self.dice.uniform(low, high), 1)


def faults(scenario: Scenario, dice: random.Random) -> Iterator[FaultSpec]:
    """Draw the faults of a scenario's random periods, in their order. Those that it cannot have are left out."""
    periods, work, workload = scenario.random, scenario.workload, scenario.pipeline
    if periods is None:
        return
    drawable = _drawable()
    for period in range(periods.periods):
        if dice.random() < _IDLE_SHARE:
            continue
        begins = period * periods.period_s
        chance = Chance(
            scenario=scenario,
            dice=dice,
            workload=workload,
            partitions=work.partitions,
            at_s=0.0,
            workers=list(range(work.workers)),
            nodes=_roles(work, workload),
        )
        for name in dice.sample(sorted(drawable), dice.randint(1, _SET_MAX)):
            chance.at_s = round(begins + dice.uniform(_EARLIEST_S, _LATEST_S), 1)
            keys = drawable[name](chance)
            if keys is not None:
                start = {} if "when" in keys else {"at_s": chance.at_s}
                spec = registry.fault(name).params.model_validate({"name": name, **start, **keys})
                if not agreement.wrong_fault(scenario, spec):
                    yield spec


def _drawable() -> Mapping[str, Callable[[Chance], Mapping[str, Any] | None]]:
    """Return the `draw` method of each fault that has one (`harness.context.fault.Drawn`), by the fault's name."""
    draws = {name: getattr(registry.fault(name), "draw", None) for name in registry.names("fault")}
    return {name: draw for name, draw in draws.items() if draw is not None}


def _each_worker_has_an_id(workload: Workload) -> bool:
    wiring = workload.wiring
    return workload.claim.transactional and wiring.transactional and wiring.transactional_id_scope == "worker"


def _roles(work: WorkloadSpec, workload: Workload) -> list[str]:
    """Return the roles of nodes that a fault may choose from; the pipeline depends on each of them."""
    ids = range(work.workers if _each_worker_has_an_id(workload) else 0)
    topics = ("input", *workload.topics)
    return [
        *(f"broker-{number}" for number in (1, 2, 3)),
        "controller-leader",
        "group-coordinator",
        *(f"transaction-coordinator:worker-{worker}" for worker in ids),
        *(f"leader:{topic}/{partition}" for topic in topics for partition in range(work.partitions)),
        *(["database"] if work.database == POSTGRESQL else []),
    ]
