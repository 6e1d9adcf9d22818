"""An application that knows nothing of onceproof is judged by its requests and the logs."""

import shutil
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import docker
import pytest

from onceproof.harness.artifacts import images
from onceproof.harness.base import paths
from onceproof.harness.base.deadlines import until
from onceproof.harness.model import scenario
from onceproof.harness.model.outputs import OutputSpec
from onceproof.harness.model.progress import DoneSpec
from onceproof.harness.record import history
from onceproof.harness.record.events import AtPhase, Outcome, Spawned, WentOn
from onceproof.harness.record.results import Results
from onceproof.pytest_plugin import Chaos

pytestmark = pytest.mark.chaos
APP = paths.applications_dir() / "confluent-kafka" / "copier.py"


def application(*faults: dict[str, Any], broken: str = "") -> scenario.Scenario:
    """The copy of a stranger, in two instances."""
    env = {
        "BOOTSTRAP": "{bootstrap}",
        "GROUP": "{group}",
        "TRANSACTIONAL_ID": "{transactional_id}",
        "SOURCE": "{topic:input}",
        "TARGET": "{topic:output}",
        "BROKEN": broken,
    }
    raw = {
        "name": "app-copy",
        "about": "a copy that nobody here instrumented",
        "app": {"command": [sys.executable, str(APP)], "env": env},
        "workload": {"name": "copy", "workers": 2, "records": 15_000, "records_per_s": 1_500},
        "faults": list(faults),
    }
    return scenario.parse(raw, where="test")


def found(results: Results) -> tuple[str, set[str], list[str]]:
    """The verdict, the classes of the findings, and the lints."""
    classes = {finding.cls for finding in results.findings}
    return results.verdict, classes, [each.name for each in results.lints or ()]


KILLED = {"name": "kill-worker", "at_s": 3.0, "target": "worker-0", "lasts_s": 2.0}
REFUSED = {"name": "refuse-writes", "at_s": 3.0, "topic": "output", "lasts_s": 2.0}


def test_a_right_application_is_valid_when_an_instance_is_killed(chaos: Chaos) -> None:
    run = chaos.start(application(KILLED))
    results = run.all()
    assert (found(results), results.reasons) == (("valid", set(), []), [])
    told = history.read(run.folder / "history.jsonl").of(Outcome)
    committed, perhaps = (sum(each.records for each in told if each.type == how) for how in ("ok", "info"))
    assert results.counts["inputs"] in (committed, committed + perhaps)
    assert results.counts["worker_restarts"] == 1


PHASES = [
    pytest.param("begun", marks=pytest.mark.long),
    pytest.param("produced", marks=pytest.mark.long),
    pytest.param("offsets-sent", marks=pytest.mark.long),
    "before-commit",
    pytest.param("after-commit", marks=pytest.mark.long),
]


@pytest.mark.parametrize("phase", PHASES)
def test_an_instance_is_killed_at_a_phase_of_its_transaction(chaos: Chaos, phase: str) -> None:
    when = {"worker": 0, "phase": phase, "count": 6}
    run = chaos.start(application({"name": "kill-worker", "target": "worker-0", "when": when, "lasts_s": 2.0}))
    results = run.all()
    assert (found(results), results.reasons) == (("valid", set(), []), [])
    events = history.read(run.folder / "history.jsonl")
    [stop] = events.of(AtPhase)
    assert (stop.phase, *stop.process, stop.transaction) == (phase, "worker-0", 1, 6)
    assert not events.of(WentOn)
    [outcome] = [each for each in events.of(Outcome) if (each.process, each.transaction) == (stop.process, 6)]
    assert outcome.type in {"after-commit": ("ok",), "begun": ("fail",)}.get(phase, ("fail", "info"))


@pytest.mark.long
def test_instances_leave_their_group_and_join_it_again(chaos: Chaos) -> None:
    away = {"name": "rebalances", "at_s": 3.0, "every_s": 2.0, "lasts_s": 6.0}
    assert found(chaos.run(application(away))) == ("valid", set(), [])


@pytest.mark.long
def test_a_right_application_is_valid_when_its_writes_are_refused(chaos: Chaos) -> None:
    assert found(chaos.run(application(REFUSED))) == ("valid", set(), [])


def test_offsets_outside_of_the_transaction_are_found_without_a_fault(chaos: Chaos) -> None:
    assert found(chaos.run(application(broken="offsets-apart"))) == ("invalid", {"unprotected"}, ["offsets-apart"])


@pytest.mark.long
def test_an_application_that_does_not_seek_back_is_found_by_a_fault(chaos: Chaos) -> None:
    verdict, classes, lints = found(chaos.run(application(REFUSED, broken="no-seek-back")))
    assert (verdict, classes, lints) == ("invalid", {"lost"}, [])


@pytest.mark.long
def test_a_killed_coordinator_is_no_anomaly(chaos: Chaos) -> None:
    """The EndTxn that waits at before-commit is not delivered, since its client asks the next coordinator."""
    when = {"worker": 0, "phase": "before-commit", "count": 6}
    killed = {"name": "kill", "target": "transaction-coordinator:worker-0", "when": when, "lasts_s": 4.0}
    assert found(chaos.run(application(killed))) == ("valid", set(), [])


@pytest.mark.long
@pytest.mark.parametrize("past", [["session"], ["session", "transaction"]])
def test_a_zombie_is_fenced(chaos: Chaos, past: list[str]) -> None:
    when = {"worker": 0, "phase": "produced", "count": 6}
    fault = {"name": "zombie", "when": when, "past": past, "fenced": "any"}
    assert found(chaos.run(application(fault))) == ("valid", set(), [])


@pytest.mark.long
def test_a_late_commit_is_found_without_a_word_of_the_application(
    chaos: Chaos, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(APP.parent)
    assert found(chaos.run(scenario.load(APP.parent / "late-end-txn.toml"))) == ("invalid", {"aborted-read"}, [])


@pytest.mark.long
@pytest.mark.parametrize("name", ["zombie", "answers-lost"])
def test_an_application_that_the_brokers_protect_is_valid(
    chaos: Chaos, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(APP.parent)
    assert found(chaos.run(scenario.load(APP.parent / f"{name}.toml"))) == ("valid", set(), [])


@pytest.mark.long
def test_a_client_without_generation_is_found_by_a_lint_and_by_a_zombie(
    chaos: Chaos, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = paths.applications_dir() / "aiokafka"
    monkeypatch.chdir(folder)
    verdict, classes, lints = found(chaos.run(scenario.load(folder / "zombie.toml")))
    assert (verdict, classes) == ("invalid", {"duplicate", "zombie-write"})
    assert "no-generation" in lints


def test_an_application_that_does_not_start_is_named(chaos: Chaos) -> None:
    results = chaos.run(application(broken="crashes"))
    assert results.verdict == "unknown"
    assert any("this application does not start" in reason.says for reason in results.reasons)


@pytest.mark.long
def test_an_application_that_hangs_is_named(chaos: Chaos) -> None:
    results = chaos.run(application(broken="hangs"))
    assert (results.verdict, {each.kind for each in results.reasons}) == ("unknown", {"workload-error"})
    assert any("this application waits for something else" in reason.says for reason in results.reasons)


@pytest.mark.long
@pytest.mark.parametrize(
    ("broken", "classes", "lints"),
    [
        ("garbage", {"phantom"}, []),
        ("read-uncommitted", {"aborted-read"}, ["unstable-offsets", "read-uncommitted"]),
    ],
)
def test_what_an_application_must_not_write_is_found(
    chaos: Chaos, monkeypatch: pytest.MonkeyPatch, broken: str, classes: set[str], lints: list[str]
) -> None:
    loaded = described("confluent-kafka", "app.toml", monkeypatch)
    assert loaded.app is not None
    app = loaded.app.model_copy(update={"env": {**loaded.app.env, "BROKEN": broken}})
    assert found(chaos.run(loaded.model_copy(update={"app": app})))[1:] == (classes, lints)


def described(folder: str, name: str, monkeypatch: pytest.MonkeyPatch, *faults: dict[str, Any]) -> scenario.Scenario:
    """A scenario of an example, in its folder, with further faults."""
    monkeypatch.chdir(paths.applications_dir() / folder)
    raw = tomllib.loads(Path(name).read_text())
    return scenario.parse({**raw, "faults": [*raw.get("faults", ()), *faults]}, where=name)


@pytest.mark.parametrize("level", [*(pytest.param(low, marks=pytest.mark.long) for low in (0, 1)), 2])
def test_an_application_is_judged_as_far_as_its_scenario_says(
    chaos: Chaos, monkeypatch: pytest.MonkeyPatch, level: int
) -> None:
    loaded = described("confluent-kafka", "app.toml", monkeypatch, KILLED)
    if level < 2:
        loaded = loaded.model_copy(update={"model": None})
    if level == 0:
        loaded = loaded.model_copy(update={"outputs": {"copies": OutputSpec()}})
    results = chaos.run(loaded)
    headline = "valid" if level == 2 else f"valid at level {level}"
    assert (results.headline, results.findings, results.reasons) == (headline, [], [])
    assert results.counts["inputs"] == results.counts["outputs"] and results.counts["worker_restarts"] == 1
    assert results.classes["lost"] == {0: "by presence", 1: "proved", 2: "proved"}[level]


@pytest.mark.parametrize("count", [2, pytest.param(6, marks=pytest.mark.long)])
def test_kafka_streams_is_judged_by_a_model(chaos: Chaos, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """The first transactions of an instance have records of an internal topic and offsets, and no outputs."""
    when = {"worker": 0, "phase": "produced", "count": count}
    killed = {"name": "kill-worker", "target": "worker-0", "when": when, "lasts_s": 2.0}
    results = chaos.run(described("kafka-streams", "count.toml", monkeypatch, killed))
    assert (results.headline, results.reasons, results.level) == ("valid", [], 2)
    [model] = [each for each in results.checks if each.name == "model"]
    assert model.compared["keys"] == 100


def in_a_container(loaded: scenario.Scenario) -> scenario.Scenario:
    """The same application, in containers of the image that the brokers are based on."""
    assert loaded.app is not None
    return loaded.model_copy(update={"app": loaded.app.model_copy(update={"image": images.BASE_IMAGE})})


@pytest.mark.parametrize("fault", ["kill-worker", pytest.param("zombie", marks=pytest.mark.long)])
def test_an_application_in_a_container(chaos: Chaos, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    when = {"worker": 0, "phase": "produced", "count": 6}
    keys: dict[str, dict[str, Any]] = {
        "kill-worker": {"target": "worker-0", "lasts_s": 2.0},
        "zombie": {"past": ["session"], "fenced": "any"},
    }
    loaded = described("kafka-streams", "count.toml", monkeypatch, {"name": fault, "when": when, **keys[fault]})
    run = chaos.start(in_a_container(loaded))
    results = run.all()
    assert (results.headline, results.reasons) == ("valid", [])
    assert len(history.read(run.folder / "history.jsonl").of(Spawned)) >= 2 + (fault == "kill-worker")
    with closing(docker.from_env()) as engine:
        assert not engine.containers.list(all=True, filters={"name": run.names.prefix})


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The JDBC URL of PostgreSQL in a container of its own."""
    start = """
        bin=$(echo /usr/lib/postgresql/*/bin)
        $bin/initdb -D /tmp/data -A trust
        echo 'host all all all trust' >>/tmp/data/pg_hba.conf
        exec $bin/postgres -D /tmp/data -c listen_addresses='*' -c unix_socket_directories=/tmp
    """
    with closing(docker.from_env()) as engine:
        container = engine.containers.run(
            images.postgresql(),
            ["sh", "-ec", start],
            user="postgres",
            ports={"5432/tcp": ("127.0.0.1", 0)},
            detach=True,
        )
        try:
            until("PostgreSQL", lambda: b"ready to accept connections" in container.logs(), deadline_s=60)
            container.reload()
            [published] = container.ports["5432/tcp"] or []
            yield f"jdbc:postgresql://127.0.0.1:{published['HostPort']}/postgres?user=postgres"
        finally:
            container.remove(force=True, v=True)


@pytest.mark.long
@pytest.mark.parametrize(("broken", "classes"), [("", set()), ("no-key", {"duplicate"})])
def test_outputs_in_a_table_of_a_database(
    chaos: Chaos, monkeypatch: pytest.MonkeyPatch, database: str, broken: str, classes: set[str]
) -> None:
    monkeypatch.setenv("DATABASE", database)
    monkeypatch.setenv("BROKEN", broken)
    run = chaos.start(described("postgresql", "rows.toml", monkeypatch, KILLED))
    results = run.all()
    assert (found(results)[1], results.reasons, results.level) == (classes, [], 2)
    assert results.counts["outputs"] >= results.counts["inputs"] == 15_000
    assert (results.classes["duplicate"], results.classes["aborted-read"]) == ("proved", "by presence")
    assert database not in (run.folder / "plan.json").read_text()


@pytest.mark.long
@pytest.mark.parametrize(("name", "classes"), [("whole", set()), ("without-channels", {"lost"})])
def test_a_state_that_is_restored_from_snapshots(
    chaos: Chaos, monkeypatch: pytest.MonkeyPatch, name: str, classes: set[str]
) -> None:
    results = chaos.run(described("snapshots", f"{name}.toml", monkeypatch))
    assert (found(results)[1], results.reasons, results.level) == (classes, [], 2)
    assert results.counts["worker_restarts"] == 2


@pytest.mark.long
def test_workers_write_to_a_database_by_its_address(
    chaos: Chaos, monkeypatch: pytest.MonkeyPatch, database: str
) -> None:
    monkeypatch.setenv("DATABASE_USER", "postgres")
    loaded = scenario.load(paths.scenarios_dir() / "pipelines" / "database-zombie.toml")
    address = database.replace("user=postgres", "user={env:DATABASE_USER}")
    work = loaded.workload.model_copy(update={"database": address})
    results = chaos.run(loaded.model_copy(update={"workload": work}))
    assert (results.headline, results.reasons) == ("valid", [])


@pytest.mark.parametrize("by", ["sentinel", pytest.param("quiet: 5s", marks=pytest.mark.long)])
def test_an_application_that_commits_no_offsets(chaos: Chaos, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    loaded = described("confluent-kafka", "assigned.toml", monkeypatch)
    results = chaos.run(loaded.model_copy(update={"done": DoneSpec(by=by)}))
    assert (results.headline, results.reasons) == ("valid", [])
    assert (results.classes["lost"], results.classes["offset-divergence"]) == ("proved", "not judged")


def test_a_place_that_is_not_found_again_loses_inputs(chaos: Chaos, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = described("confluent-kafka", "assigned.toml", monkeypatch)
    assert loaded.app is not None
    app = loaded.app.model_copy(update={"env": {**loaded.app.env, "BROKEN": "no-place"}})
    slower = loaded.workload.model_copy(update={"records_per_s": 600})  # inputs still come when it has started again
    broken = loaded.model_copy(update={"app": app, "workload": slower})
    assert found(chaos.run(broken)) == ("invalid", {"lost"}, [])


@pytest.mark.long
@pytest.mark.parametrize(("name", "result"), [("kafka-20685", "proved"), ("kafka-20685-fixed", "refuted")])
def test_a_bug_of_kafka_streams(chaos: Chaos, monkeypatch: pytest.MonkeyPatch, name: str, result: str) -> None:
    assert chaos.run(described("kafka-streams", f"{name}.toml", monkeypatch)).result == result


@pytest.mark.long
@pytest.mark.skipif(shutil.which("go") is None, reason="the Go toolchain is not installed")
def test_an_application_in_go(chaos: Chaos, monkeypatch: pytest.MonkeyPatch) -> None:
    results = chaos.run(described("franz-go", "app.toml", monkeypatch, KILLED))
    assert (results.headline, results.reasons) == ("valid", [])


@pytest.mark.long
@pytest.mark.skipif(shutil.which("go") is None, reason="the Go toolchain is not installed")
@pytest.mark.parametrize(("name", "result"), [("franz-go-1217", "proved"), ("franz-go-1217-fixed", "refuted")])
def test_a_bug_of_franz_go(chaos: Chaos, monkeypatch: pytest.MonkeyPatch, name: str, result: str) -> None:
    assert chaos.run(described("franz-go", f"{name}.toml", monkeypatch)).result == result


@pytest.mark.long
def test_a_late_marker_is_found_without_a_word_of_the_application(
    chaos: Chaos, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = chaos.run(described("confluent-kafka", "late-marker.toml", monkeypatch))
    assert found(results)[:2] == ("invalid", {"aborted-read", "torn-transaction"})
