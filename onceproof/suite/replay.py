"""Repeat the plan of a run: how often does it find the same class of anomaly again?

    original = replay.plan_of(Path("runs/soak/copy-random-7-20261126T101112"))
    trials = replay.Trials(original.scenario, seed, cls="duplicate", player)
    trials.until(failures=3, runs=12)          2 of 2 …, 3 of 4 runs (19% to 99%)

A run in which the class is found again is a failure. One that comes to a verdict without it, valid or not, is a pass.
One that is `unknown` because it stalled, or because the harness failed, is neither.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from onceproof.harness.base import redaction
from onceproof.harness.base.errors import BadInput
from onceproof.harness.cluster.pool import Clusters
from onceproof.harness.model import plan
from onceproof.harness.model.scenario import Scenario, parse
from onceproof.harness.record import results
from onceproof.harness.record.results import Results
from onceproof.suite import batch, rates
from onceproof.suite.smaller import document

FAILURES_WANTED, RUNS_MAX = 3, 12
_PROVES_NOTHING = ("stalled", "harness-error", "interrupted", "unplanned-failure", "workload-error")


class Play(Protocol):
    """Executes a run of a scenario and returns its results."""

    def __call__(self, scenario: Scenario) -> Results:
        """Execute one run."""


@dataclass(kw_only=True)
class Trials:
    """The runs of one scenario so far: failures, passes, and those that prove nothing. `found` has all classes."""

    scenario: Scenario
    cls: str
    failures: int = 0
    passes: int = 0
    nothing: int = 0
    found: set[str] = field(default_factory=set)

    @property
    def runs(self) -> int:
        """The runs that came to a verdict."""
        return self.failures + self.passes

    def play(self, play: Play) -> bool | None:
        """Execute one run. Return whether the class was found, None if the run proves nothing."""
        judged = play(self.scenario)
        classes = {finding.cls for finding in judged.findings}
        if self.cls in classes:
            self.failures += 1
            self.found |= classes
            return True
        if any(reason.kind in _PROVES_NOTHING for reason in judged.reasons):
            self.nothing += 1
            return None
        self.passes += 1
        return False

    def until(self, play: Play, *, failures: int = FAILURES_WANTED, runs: int = RUNS_MAX) -> None:
        """Execute runs until so many have failed, or until so many were executed, those included that prove nothing."""
        while self.failures < failures and self.runs + self.nothing < runs:
            self.play(play)

    @property
    def says(self) -> str:
        """The rate of failures in words, with its 95% interval."""
        if not self.runs:
            return f"no run came to a verdict; {self.nothing} proved nothing"
        nothing = f", and {self.nothing} proved nothing" if self.nothing else ""
        return f"{self.cls} was found in {rates.said(self.failures, self.runs)}{nothing}"


def plan_of(folder: Path, *, explicit: Scenario | None = None) -> tuple[Scenario, int]:
    """Return the plan of a run as a scenario without random choices, and its seed.

    `explicit` is the run's own scenario, from which secrets come that the plan does not contain. Raises BadInput when
    the folder has no valid plan, when a file that the scenario names is not there, or when secrets are missing.
    """
    planned = plan.read(folder / "plan.json")
    raw = document(planned.scenario)
    raw.pop("random", None)
    config, settings = raw.get("client", {}).get("config", {}), raw.get("cluster", {}).get("settings", {})
    if explicit is not None:
        config.update({name: explicit.client_config.get(name, value) for name, value in config.items()})
        settings.update({name: explicit.cluster.settings.get(name, value) for name, value in settings.items()})
    hidden = [name for name, value in {**config, **settings}.items() if value == redaction.HIDDEN]
    if hidden:
        says = f"{folder / 'plan.json'}: the values of {', '.join(hidden)} are not in it; give --scenario FILE"
        raise BadInput(says)
    return parse(raw, where=str(folder / "plan.json")), planned.seed


def class_of(folder: Path, wanted: str | None) -> str:
    """Return the class of anomaly to repeat: the one that was asked for, or the first that the run has found.

    `unprotected` is taken only if there is no other, since it needs no fault. Raises BadInput when the run has no such
    finding.
    """
    found = [finding.cls for finding in results.read(folder / "results.json").findings]
    if wanted is None:
        if not found:
            raise BadInput(f"{folder}: the run has no finding to repeat")
        return min(found, key=lambda cls: cls == "unprotected")
    if wanted not in found:
        raise BadInput(
            f"--class: {wanted:.40}: allowed: {', '.join(dict.fromkeys(found)) or 'none, it has no finding'}"
        )
    return wanted


class Player:
    """Plays scenarios on reused clusters. The folders of runs without the class are removed."""

    def __init__(self, *, cls: str, seed: int, options: batch.Options, say: Callable[[str], None]) -> None:
        self._cls, self._seed, self._options, self._say = cls, seed, options, say
        self._clusters = Clusters(keep=options.keep, say=options.progress.say)
        self.runs = 0
        self.last_failure: Path | None = None

    def __call__(self, scenario: Scenario) -> Results:
        """Execute one run, and say how it ended."""
        self.runs += 1
        self._clusters.keep_only([scenario.cluster])
        self._options.progress.seconds.clear()
        one = batch.prepared(scenario, self._seed, self._options, self._clusters)
        judged = one.all()
        found = any(finding.cls == self._cls for finding in judged.findings)
        if found:
            self._forget(self.last_failure)
            self.last_failure = one.folder
        else:
            self._forget(one.folder)
        self._say(f"run {self.runs}: {len(scenario.faults)} faults: {judged.headline}")
        return judged

    @staticmethod
    def _forget(folder: Path | None) -> None:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Remove the clusters."""
        self._clusters.close()
