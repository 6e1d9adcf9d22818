"""Whom a zombie's group must have put in its place before the zombie is resumed."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from onceproof.faults.zombie import FAULT, ZombieSpec
from onceproof.harness.base.errors import DeadlineError
from onceproof.harness.cluster.described import Member
from onceproof.harness.context.context import FaultContext
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.record.events import FaultTarget, Outcome, ZombieLate
from onceproof.harness.record.history import History
from tests.unit.still_cluster import StillContext

Owners = dict[int, tuple[int, ...]]  # a worker in the group → its partitions


def committed() -> Outcome:
    """A commit of inputs of partition 0."""
    return Outcome(transaction=1, sources={"0": (0, 9)}, records=9, type="ok", incarnation=1)


class Rebalanced:
    """A chain whose second group, of the workers 1 and 3, goes through these assignments, one for each question.

    When an assignment is asked for, the workers that it names in `commits` commit inputs of partition 0.
    """

    def __init__(self, tmp_path: Path, assigned: list[tuple[Owners, tuple[int, ...]]]) -> None:
        self._assigned, self._last = iter(assigned), assigned[-1][0]
        still = StillContext("chain")
        self.names = still.names
        cast(Any, still.context.cluster).admin.members = self._members
        self.history = History(tmp_path / "history.jsonl")
        workers: Any = SimpleNamespace(
            is_member=lambda worker, member: member.client_id == f"worker-{worker}",
            incarnation=lambda worker: 1,
            pause=lambda worker: None,
        )
        self.context = FaultContext(
            plan=still.context.plan,
            cluster=still.context.cluster,
            workers=cast(Any, workers),
            names=still.names,
            history=self.history,
        )

    def _members(self, group: str) -> Iterator[Member]:
        second, read = self.names.read[1]
        if group != second:
            return
        self._last, commits = next(self._assigned, (self._last, ()))
        for worker in commits:
            self.history.append(f"worker-{worker}", committed())
        for worker, partitions in self._last.items():
            places = tuple((read, number) for number in partitions)
            yield Member(member_id=f"m{worker}", client_id=f"worker-{worker}", partitions=places)

    def stopped(self, **keys: Any) -> str:
        """The successor of worker 1, once it was stopped and is taken for dead."""
        when = {"worker": 1, "phase": "produced", "count": 3}
        spec = ZombieSpec.model_validate({"name": "zombie", "when": when, "fenced": "either", **keys})
        fault = PlannedFault(id="0-zombie", spec=spec)
        with closing(self.history):
            FAULT.hold(self.context, fault, FAULT.inject(self.context, fault))
        return self.history.events().the(ZombieLate, fault="0-zombie").successor


def test_the_second_service_of_a_chain_has_its_own_group(tmp_path: Path) -> None:
    """A commit of the first service, whose topic has the same partitions, is not one of a successor."""
    chain = Rebalanced(tmp_path, [({1: (0,), 3: (1,)}, ()), ({1: (0,), 3: (1,)}, (0, 3)), ({3: (0, 1)}, (0, 3))])
    assert chain.stopped() == "worker-3"
    assert chain.history.events().the(FaultTarget, fault="0-zombie").partitions == [0]


def test_a_zombie_without_partitions_is_succeeded_when_it_has_left(tmp_path: Path) -> None:
    """During a rebalance no member has any. What others commit before it has left the group says nothing."""
    chain = Rebalanced(tmp_path, [({1: (), 3: ()}, ()), ({1: (), 3: ()}, (3,)), ({3: (0, 1)}, ()), ({}, ())])
    with pytest.raises(DeadlineError, match="waited 1 s for a successor's commit in its group"):
        chain.stopped(lasts_s=1)
    (tmp_path / "again").mkdir()
    chain = Rebalanced(tmp_path / "again", [({1: (), 3: ()}, ()), ({3: (0, 1)}, ())])
    later = threading.Timer(0.5, lambda: chain.history.append("worker-3", committed()))
    later.start()
    assert chain.stopped() == "worker-3"
    later.join()
