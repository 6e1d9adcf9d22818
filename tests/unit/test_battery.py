"""The plans of a battery are scenarios that anybody can run, and its page says what came of them."""

import tomllib
from pathlib import Path

import pytest

from onceproof.cli.main import main
from onceproof.harness.base import paths
from onceproof.harness.base.errors import BadInput
from onceproof.harness.model import scenario
from onceproof.harness.record.events import FaultInjected, Outcome
from onceproof.harness.record.history import Events
from onceproof.harness.record.results import Lint
from onceproof.suite import battery
from onceproof.suite.battery import PLANS, Battery, Tried

APP = paths.applications_dir() / "confluent-kafka" / "app.toml"
OWN = 'name = "mine"\nabout = "x"\n[workload]\nname = "copy"\n'


@pytest.mark.parametrize("plan", PLANS)
def test_a_plan_is_a_scenario(plan: str, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(OWN)
    for file in (APP, own):
        loaded = scenario.parse(tomllib.loads(battery.text(file, plan)), where="test")
        assert loaded.name == f"{scenario.load(file).name}-{plan.replace('@', '-at-')}"
        assert bool(loaded.faults) + bool(loaded.random) == (plan != "no-faults")
        assert loaded.app is not None or loaded.collect.requests
        phase = plan.partition("@")[2]
        assert not phase or loaded.faults[0].when.phase == phase


def test_the_scenarios_are_written(tmp_path: Path) -> None:
    [(plan, path)] = battery.write(APP, tmp_path, ["kill-worker@begun"])
    assert (plan, path.name) == ("kill-worker@begun", "kill-worker-at-begun.toml")
    assert scenario.load(path).app == scenario.load(APP).app


@pytest.mark.parametrize("table", ['[[faults]]\nname = "rebalances"\nat_s = 1', "[random]", "[expect]"])
def test_what_brings_its_own_faults_is_refused(tmp_path: Path, table: str) -> None:
    own = tmp_path / "own.toml"
    own.write_text(OWN + table + "\n")
    with pytest.raises(BadInput, match=r"own.toml: (faults|random|expect): a battery brings its own faults"):
        battery.text(own, "no-faults")


def test_what_cannot_be_run_under_a_plan_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(battery, "PLANS", {"wrong": '[[faults]]\nname = "abort"\nat_s = 1'})
    with pytest.raises(BadInput, match=r"app.toml, with the plan wrong: faults\[0\]"):
        battery.text(APP, "wrong")


def tried(plan: str, verdict: str = "valid", *, lints: tuple[Lint, ...] = ()) -> Tried:
    return Tried(
        plan=plan,
        headline=verdict,
        verdict=verdict,
        says=["inputs were lost"] if verdict == "invalid" else [],
        recovery_s=None if plan == "no-faults" else 2.5,
        seconds=30.0,
        lints=list(lints),
        repeat=f"onceproof run runs/{plan}.toml --seed 1",
        report=Path(plan) / "report.html",
    )


ACKS = Lint(name="acks", kip="KIP-98", count=3, says="a new leader may lack records", first={})


def test_the_page_of_a_battery_that_held() -> None:
    done = Battery(name="orders", tried=[tried("no-faults"), tried("rebalances")])
    assert done.held
    assert done.page().splitlines()[0] == "# orders: 2 of 2 runs valid"
    assert "| rebalances | valid | 2.5 s | [report](rebalances/report.html) |" in done.page()
    assert "repeat" not in done.page() and "Nothing." in done.page()


def test_the_page_of_a_battery_that_did_not_hold() -> None:
    done = Battery(name="orders", tried=[tried("no-faults", lints=(ACKS,)), tried("rebalances", "invalid")])
    assert not done.held
    assert "| acks | KIP-98 | a new leader may lack records |" in done.page()
    assert "# inputs were lost\n$ onceproof run runs/rebalances.toml --seed 1\n" in done.page()


def test_a_lint_is_enough_not_to_hold() -> None:
    assert not Battery(name="orders", tried=[tried("no-faults", lints=(ACKS,))]).held


def committed(worker: int, at: float, kind: str = "ok") -> Outcome:
    about = {"at": at, "t": at, "n": 1, "source": f"worker-{worker}", "incarnation": 1}
    return Outcome.model_validate({**about, "transaction": 1, "type": kind, "sources": {}, "records": 0})


def test_recovery_is_the_time_until_every_worker_has_committed_again() -> None:
    fault = FaultInjected.model_validate({"at": 10.0, "source": "harness", "fault": "1-kill", "name": "kill"})
    before, first, again = committed(1, 9.0), committed(0, 11.0), committed(0, 12.0)
    failed, last = committed(1, 12.5, "fail"), committed(1, 14.5)
    assert battery.recovery_s(Events([before, fault, first, again, failed, last]), 2) == 4.5
    assert battery.recovery_s(Events([before, fault, first, failed]), 2) is None
    assert battery.recovery_s(Events([before, first, last]), 2) is None


def test_the_scenarios_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["battery", str(APP), "--print", "--only", "rebalances"]) == 0
    assert tomllib.loads(capsys.readouterr().out)["faults"] == [{"name": "rebalances", "at_s": 3, "lasts_s": 6}]


def test_a_plan_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["battery", str(APP), "--print", "--only", "kill-worker"]) == 2
    assert "kill-worker: no such plan; did you mean kill-worker@begun?; allowed: no-faults, " in capsys.readouterr().err


def test_init_writes_what_runs_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "chaos"
    assert main(["init", str(folder)]) == 0
    assert sorted(each.name for each in folder.iterdir()) == ["app.toml", "copier.py", "test_app.py"]
    assert scenario.load(folder / "app.toml").app is not None
    assert main(["init", str(folder)]) == 2
    assert f"{folder}/app.toml: it is there already; allowed: " in capsys.readouterr().err


def test_init_where_nothing_can_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "/proc/none"]) == 2
    assert "/proc/none: cannot be written: " in capsys.readouterr().err


@pytest.mark.parametrize("file", sorted(APP.parent.glob("*.toml")), ids=lambda file: file.stem)
def test_the_examples_are_scenarios(file: Path) -> None:
    assert scenario.load(file).app is not None


def test_the_plans_that_fit_an_application() -> None:
    left_out = {
        name: {*PLANS} - {*battery.suited(scenario.load(paths.applications_dir() / name))}
        for name in ("confluent-kafka/app.toml", "confluent-kafka/assigned.toml", "postgresql/rows.toml")
    }
    assert left_out == {
        "confluent-kafka/app.toml": set(),
        "confluent-kafka/assigned.toml": {"delete-records"},
        "postgresql/rows.toml": {"refuse-writes", *(plan for plan in PLANS if "@" in plan)},
    }
