"""A plan is shrunk to the faults that a failure needs, with a certificate, whatever else the plan has."""

import json
import random
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onceproof.cli.main import main
from onceproof.harness.base.errors import BadInput
from onceproof.harness.model import plan
from onceproof.harness.model.scenario import Scenario, load, parse
from onceproof.harness.record.results import Finding, Reason, Results, decide
from onceproof.suite import certificate, cone, rates, replay, smaller
from onceproof.suite.replay import Trials
from onceproof.suite.shrink import Bounds, Shrunk, shrink
from onceproof.verifiers.verify import verify
from tests.mutants import of_records
from tests.mutants.catalogue import MUTANTS, RUNS
from tests.unit.good_run import GoodRun

assert of_records  # fills MUTANTS
FAULTS: list[dict[str, Any]] = [
    {"name": "kill", "target": "broker-1", "at_s": 3.0},
    {"name": "pause", "target": "broker-2", "at_s": 9.0, "lasts_s": 8.0},
    {"name": "kill", "target": "broker-3", "after": 1},
    *({"name": "stop", "target": f"broker-{1 + number % 3}", "at_s": 20.0 + number} for number in range(8)),
    {"name": "abort", "when": {"worker": 0, "phase": "produced", "count": 40}},
]
Needs = Callable[[Scenario], float]


def scenario(faults: list[dict[str, Any]] | None = None) -> Scenario:
    raw = {"name": "test", "about": "A test.", "workload": {"name": "copy", "workers": 2}, "faults": faults or FAULTS}
    return parse(raw, where="test")


def judged(classes: set[str], reasons: tuple[Reason, ...] = ()) -> Results:
    findings = [Finding(cls=cls, count=1, says="a finding") for cls in sorted(classes)]
    return Results(
        name="test",
        seed=1,
        command="",
        verdict=decide(findings, reasons),
        as_expected=False,
        expectation="",
        findings=findings,
        reasons=reasons,
        checks=[],
        counts={},
        versions={},
    )


class Simulated:
    """Fails with the probability that `needs` returns for a plan."""

    def __init__(self, needs: Needs, seed: int) -> None:
        self._needs, self._dice, self.runs = needs, random.Random(seed), 0

    def __call__(self, scenario: Scenario) -> Results:
        self.runs += 1
        return judged({"duplicate"} if self._dice.random() < self._needs(scenario) else set())


def pause_and_abort(rate: float) -> Needs:
    def needs(scenario: Scenario) -> float:
        names = {spec.name for spec in scenario.faults}
        return rate if {"pause", "abort"} <= names else 0.0

    return needs


def shrunk(needs: Needs, seed: int, cones: list[set[int]] | None = None, **bounds: Any) -> Shrunk:
    return shrink(scenario(), cls="duplicate", cones=cones or [], play=Simulated(needs, seed), bounds=Bounds(**bounds))


@pytest.mark.parametrize("seed", range(5))
def test_twelve_faults_are_shrunk_to_the_two_that_are_needed(seed: int) -> None:
    done = shrunk(pause_and_abort(1.0), seed)
    assert [spec.name for spec in done.smallest.scenario.faults] == ["pause", "abort"]
    assert done.proved and not done.cut_short and done.passes_needed == 3
    at = next(number for number, says in enumerate(done.steps) if says.startswith("faults begin earlier"))
    assert at <= 14  # eleven faults are tried, and the cones and the original before
    assert [done.needs(number) for number in (0, 1)] == [True, True]
    smallest = done.smallest.scenario
    assert smallest.workload.workers == 1 and smallest.workload.records < 4_000 and smallest.faults[0].lasts_s < 2
    assert smallest.faults[1].when is not None and smallest.faults[1].when.count == 1


@pytest.mark.parametrize("seed", range(5))
def test_a_plan_that_fails_sometimes_keeps_what_it_needs(seed: int) -> None:
    done = shrunk(pause_and_abort(0.6), seed, runs=400)
    names = [spec.name for spec in done.smallest.scenario.faults]
    assert {"pause", "abort"} <= set(names)
    assert done.passes_needed >= 3
    low, high = rates.interval(done.smallest.failures, done.smallest.runs)
    assert low <= 0.6 <= high


def test_the_cone_saves_runs() -> None:
    without, within = shrunk(pause_and_abort(1.0), 1), shrunk(pause_and_abort(1.0), 1, [{1, 2, 11}, {1, 11}])
    assert [spec.name for spec in within.smallest.scenario.faults] == ["pause", "abort"]
    assert within.runs < without.runs - 8
    wrong = shrunk(pause_and_abort(1.0), 1, [{0, 3}])
    assert [spec.name for spec in wrong.smallest.scenario.faults] == ["pause", "abort"]


def test_bounds_end_the_search_and_what_was_found_is_kept() -> None:
    done = shrunk(pause_and_abort(1.0), 1, runs=8)
    assert done.runs == 8 and done.cut_short == "8 runs" and not done.proved
    assert len(done.smallest.scenario.faults) < len(FAULTS)
    assert shrunk(pause_and_abort(1.0), 1, minutes=0.0).cut_short == "0 minutes"


def test_an_interruption_keeps_what_was_found() -> None:
    play = Simulated(pause_and_abort(1.0), 1)

    def interrupted(scenario: Scenario) -> Results:
        if play.runs == 9:
            raise KeyboardInterrupt
        return play(scenario)

    done = shrink(scenario(), cls="duplicate", cones=[], play=interrupted, bounds=Bounds())
    assert done.interrupted and done.cut_short == "an interruption" and not done.proved
    assert len(done.smallest.scenario.faults) < len(FAULTS)


def test_a_plan_that_does_not_fail_again_is_not_shrunk() -> None:
    done = shrunk(lambda _: 0.0, 1)
    assert done.runs == 12 and done.smallest is done.original and not done.proved


def test_runs_that_prove_nothing_are_neither_failures_nor_passes() -> None:
    trials = Trials(scenario=scenario(), cls="duplicate")
    trials.until(lambda _: judged(set(), (Reason(kind="stalled", says="it hangs"),)))
    assert (trials.failures, trials.passes, trials.nothing) == (0, 0, 12)
    assert trials.says == "no run came to a verdict; 12 proved nothing"
    trials = Trials(scenario=scenario(), cls="duplicate")
    trials.until(lambda _: judged({"duplicate", "lost"}, (Reason(kind="stalled", says="it hangs"),)))
    assert (trials.failures, trials.found) == (3, {"duplicate", "lost"})
    assert trials.says == "duplicate was found in 3 of 3 runs (29% to 100%)"


def test_a_fault_that_starts_after_another_goes_with_it() -> None:
    kept = smaller.without_fault(scenario(), 1)
    assert kept is not None and [spec.name for spec in kept.faults[:2]] == ["kill", "stop"]
    moved = smaller.without_fault(scenario(), 0)
    assert moved is not None and moved.faults[1].after == 0


def test_the_certificate_and_the_scenario(tmp_path: Path) -> None:
    done = shrunk(pause_and_abort(1.0), 1)
    files = {"scenario_file": tmp_path / "shrunk.toml", "certificate_file": tmp_path / "certificate.json"}
    made = certificate.write(done, seed=7, **files)
    written = load(tmp_path / "shrunk.toml")
    assert written == made and written.name == "test-shrunk"
    assert written.faults == done.smallest.scenario.faults
    assert written.expect.findings == ("duplicate",)
    assert tomllib.loads((tmp_path / "shrunk.toml").read_text())["cluster"]["version"] == written.cluster.version
    told = json.loads((tmp_path / "certificate.json").read_text())
    assert told["proved"] and told["smallest"]["faults"] == 2 and told["original"]["faults"] == 12
    assert [each["needed"] for each in told["without"]] == [True, True]
    assert told["smallest"]["interval"][1] == 1.0


def test_the_plan_of_a_run_has_its_drawn_faults() -> None:
    raw = {"name": "test", "about": "A test.", "workload": {"name": "copy"}, "random": {"periods": 5}}
    made = plan.make(parse(raw, where="test"), 3)
    again = smaller.scenario_of(
        smaller.document(made.scenario)
        | {
            "faults": [
                smaller.document(made.scenario.model_copy(update={"faults": (each.spec,)}))["faults"][0]
                for each in made.faults
            ]
        }
    )
    assert again is not None and [each.spec for each in made.faults] == list(again.faults)


def test_a_recorded_run_can_be_replayed(tmp_path: Path) -> None:
    for folder in sorted(RUNS.iterdir()):
        before = plan.read(folder / "plan.json")
        made, seed = replay.plan_of(folder)
        assert made.random is None and seed == before.seed
        assert list(made.faults) == [each.spec for each in before.faults]
        assert made.workload == before.scenario.workload and made.cluster == before.scenario.cluster
    run = GoodRun()
    run.raw["client"] = {"config": {"sasl.password": "secret"}}
    folder = run.write(tmp_path / "secret")
    with pytest.raises(BadInput, match=r"sasl\.password are not in it; give --scenario FILE"):
        replay.plan_of(folder)
    explicit = parse(run.raw, where="test")
    made, _ = replay.plan_of(folder, explicit=explicit)
    assert made.client_config["sasl.password"] == "secret"


def test_the_class_to_repeat(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, _ = MUTANTS["doubled"].make()
    folder = made.write(tmp_path / "run")
    verify(folder)
    assert replay.class_of(folder, None) == "duplicate" == replay.class_of(folder, "duplicate")
    assert main(["shrink", str(folder), "--class", "lost"]) == 2
    assert "--class: lost: allowed: duplicate" in capsys.readouterr().err
    fine = GoodRun().write(tmp_path / "fine")
    verify(fine)
    assert main(["replay", str(fine)]) == 2
    assert "the run has no finding to repeat" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("mutant", "cls", "cones"),
    [
        ("lost-on-one-topic", "lost", [{0, 1}, {1}]),  # the broker was killed later, the other worker is not named
        ("doubled-on-one-topic", "duplicate", [{1, 2}]),
        ("broken-on-one-topic-lost-on-the-other", "corrupted", []),  # it is after all faults, on both workers
    ],
)
def test_the_cone_of_a_finding(tmp_path: Path, mutant: str, cls: str, cones: list[set[int]]) -> None:
    made, _ = MUTANTS[mutant].make()
    folder = made.write(tmp_path / "run")
    assert cls in {finding.cls for finding in verify(folder).findings}
    assert cone.of(folder, cls) == cones


def test_rates() -> None:
    assert [round(each, 3) for each in (*rates.interval(0, 12), *rates.interval(3, 12))] == [0, 0.265, 0.055, 0.572]
    assert rates.interval(12, 12)[1] == 1.0
    assert rates.upper_bound(50) == pytest.approx(0.0582, abs=1e-3)
    assert [rates.passes_needed(rate) for rate in (1, 0.75, 0.5, 0.1)] == [1, 3, 6, 38]
    for wrong in ((1, 0), (3, 2), (-1, 2)):
        with pytest.raises(ValueError, match="failures in"):
            rates.interval(*wrong)
