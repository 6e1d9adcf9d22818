"""Shrink the plan of a run to the smallest one that still finds the same class of anomaly.

    shrink.shrink(scenario, cls="aborted-read", cone=[{0, 3, 7}, {0, 3}], play=player, bounds=Bounds(runs=60))

1. The plan is repeated until it has failed three times. From its rate p follows how many passes reject a smaller plan:
   the smallest n with (1 − p)^n <= 0.02.
2. The faults outside the finding's cone are left out at once: those that began after it, and those on other workers.
3. The faults are left out one by one, then in each step of `smaller.steps` something else is made smaller. A smaller
   plan is accepted at its first failure.
4. The smallest plan is repeated, and so is it without each of its faults. That is the certificate.

The order is that of Zeller's delta debugging (1999) with complements of single faults only: a plan has few faults that
matter, and a run is expensive.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from onceproof.harness.model.scenario import Scenario
from onceproof.harness.record.results import Results
from onceproof.suite import rates, smaller
from onceproof.suite.replay import FAILURES_WANTED, Play, Trials

_ROUNDS_MAX = 6  # of halving
_NOTHING_MAX = 3  # runs of one plan that prove nothing, after which it is given up


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """When to stop: after so many runs, or so many minutes."""

    runs: int = 100
    minutes: float = 60.0


@dataclass(kw_only=True)
class Shrunk:
    """The smallest plan with its certificate.

    `original` and `smallest` are the trials of the first and of the last plan. `without` has the trials of the last
    plan without each of its faults, by the fault's number, as far as the bounds allowed. `steps` says what was done,
    `passes_needed` how many passes reject a plan, and `cut_short` which bound, or interruption, ended the search.
    """

    original: Trials
    smallest: Trials
    without: dict[int, Trials] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    runs: int = 0
    passes_needed: int = 1
    cut_short: str = ""
    interrupted: bool = False

    def needs(self, number: int) -> bool:
        """Return whether a fault of the smallest plan was seen to be needed."""
        less = self.without.get(number)
        return less is not None and not less.failures and less.passes >= self.passes_needed

    @property
    def proved(self) -> bool:
        """Whether the smallest plan fails, and each of its faults was seen to be needed."""
        faults = range(len(self.smallest.scenario.faults))
        return self.smallest.failures >= FAILURES_WANTED and all(self.needs(number) for number in faults)


class _Spent(Exception):
    """A bound is reached."""


class _Search:
    """The state of a search: the smallest plan so far, and the trials of all plans that were tried."""

    def __init__(self, scenario: Scenario, cls: str, play: Play, bounds: Bounds, say: Callable[[str], None]) -> None:
        self._cls, self._play, self._bounds, self._say = cls, play, bounds, say
        self._ends = time.monotonic() + bounds.minutes * 60
        self._tried: dict[str, Trials] = {}
        original = self._trials(scenario)
        self.done = Shrunk(original=original, smallest=original)

    def _trials(self, scenario: Scenario) -> Trials:
        """Return the trials of a plan, those from before if it was tried already."""
        key = str(smaller.document(scenario))
        return self._tried.setdefault(key, Trials(scenario=scenario, cls=self._cls))

    def _once(self, scenario: Scenario) -> Results:
        if self.done.runs >= self._bounds.runs:
            raise _Spent(f"{self._bounds.runs} runs")
        if time.monotonic() > self._ends:
            raise _Spent(f"{self._bounds.minutes:g} minutes")
        self.done.runs += 1
        return self._play(scenario)

    def begin(self) -> bool:
        """Repeat the original plan. Return whether it fails at all."""
        original = self.done.original
        original.until(self._once)
        self._step(original.says)
        if not original.failures:
            return False
        # One more pass than was seen: a plan that failed three times of three need not fail always.
        self.done.passes_needed = rates.passes_needed(original.failures / (original.runs + 1))
        self._step(f"a smaller plan is rejected after {self.done.passes_needed} passes")
        return True

    def fails(self, scenario: Scenario) -> bool:
        """Return whether a smaller plan fails: at its first failure, or not after so many passes as are needed."""
        trials = self._trials(scenario)
        while not trials.failures and trials.passes < self.done.passes_needed and trials.nothing < _NOTHING_MAX:
            trials.play(self._once)
        return trials.failures > 0

    def accept(self, scenario: Scenario | None, says: str) -> bool:
        """Try a smaller plan, and go on from it if it fails."""
        if scenario is None:
            return False
        fails = self.fails(scenario)
        self._step(f"{says}: {'still ' + self._cls if fails else 'not any more'}")
        if fails:
            self.done.smallest = self._trials(scenario)
        return fails

    def drop_outside(self, cones: Sequence[set[int]]) -> None:
        """Leave out all faults outside of a cone at once; the smallest cone that still fails is taken."""
        scenario = self.done.original.scenario
        for cone in sorted(cones, key=len):
            left_out = len(scenario.faults) - len(cone)
            if not left_out:
                continue
            says = f"without {left_out} faults outside of the finding's cone"
            if self.accept(smaller.with_faults(scenario, sorted(cone)), says):
                return

    def drop_one_by_one(self) -> None:
        """Leave out each fault, the last first, since a fault that begins after another may depend on it."""
        number = len(self.done.smallest.scenario.faults) - 1
        while number >= 0:
            now = self.done.smallest.scenario
            if number < len(now.faults) > 1:
                self.accept(smaller.without_fault(now, number), f"without {_fault(now, number)}")
            number -= 1

    def make_smaller(self) -> None:
        """Halve what can be halved, as long as the plan still fails."""
        refused: set[str] = set()
        for _ in range(_ROUNDS_MAX):
            taken = False
            for says, _ in list(smaller.steps(self.done.smallest.scenario)):
                again = dict(smaller.steps(self.done.smallest.scenario))  # an earlier step may have changed the plan
                if says in refused or says not in again:
                    continue
                if self.accept(again[says], says):
                    taken = True
                else:
                    refused.add(says)
            if not taken:
                return

    def certify(self) -> None:
        """Try the smallest plan without each of its faults, and repeat it.

        A fault that turns out not to be needed, since the plan has become smaller in between, is left out.
        """
        number = 0
        while number < len(self.done.smallest.scenario.faults):
            smallest = self.done.smallest.scenario
            less = smaller.without_fault(smallest, number)
            if less is not None and self.accept(less, f"without {_fault(smallest, number)}"):
                self.done.without.clear()
                number = 0
                continue
            if less is not None:
                self.done.without[number] = self._trials(less)
            number += 1
        self.done.smallest.until(self._once)
        self._step(f"the smallest plan: {self.done.smallest.says}")

    def _step(self, says: str) -> None:
        self.done.steps.append(says)
        self._say(says)

    def spent(self, bound: str) -> None:
        """Note what ended the search."""
        self.done.cut_short = bound
        self._step(f"ended after {bound}")


def shrink(
    scenario: Scenario,
    *,
    cls: str,
    cones: Sequence[set[int]],
    play: Play,
    bounds: Bounds,
    say: Callable[[str], None] = lambda _: None,
) -> Shrunk:
    """Return the smallest plan that still finds `cls`, as far as the bounds, or an interruption, allow.

    `cones` are sets of numbers of faults that may be the cause (`cone.of`). If the original plan does not fail in
    twelve runs, it is returned as it is.
    """
    search = _Search(scenario, cls, play, bounds, say)
    try:
        if search.begin():
            search.drop_outside(cones)
            search.drop_one_by_one()
            search.make_smaller()
            search.certify()
    except _Spent as bound:
        search.spent(str(bound))
    except KeyboardInterrupt:
        search.spent("an interruption")
        search.done.interrupted = True
    return search.done


def _fault(scenario: Scenario, number: int) -> str:
    spec = scenario.faults[number]
    target = getattr(spec, "target", None) or getattr(spec, "topic", None)
    return f"fault {number} ({spec.name}{f' of {target}' if target else ''})"
