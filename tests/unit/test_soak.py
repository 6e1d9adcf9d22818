"""Random periods are drawn as they say, and a soak's bound follows from what was judged."""

import json
import os
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from onceproof.cli import scenarios
from onceproof.cli.main import main
from onceproof.harness.base import paths
from onceproof.harness.base.errors import BadInput
from onceproof.harness.base.progress import Progress
from onceproof.harness.model import plan, targets
from onceproof.harness.model.scenario import Scenario, load, parse
from onceproof.harness.record import documents
from onceproof.suite import batch, matrix, preflight
from onceproof.suite.batch import Line
from onceproof.suite.soak import Soak, read, soak


def scenario(periods: int) -> Scenario:
    work = {"name": "copy", "workers": 3}
    return parse({"name": "random", "about": "drawn", "workload": work, "random": {"periods": periods}}, where="test")


def test_the_same_seed_draws_the_same_faults() -> None:
    assert plan.make(scenario(4), 7).to_json() == plan.make(scenario(4), 7).to_json()
    assert plan.make(scenario(4), 7).faults != plan.make(scenario(4), 8).faults


def test_one_period_in_four_is_free_and_no_set_takes_two_nodes_or_a_worker_twice() -> None:
    free = 0
    for seed in range(200):
        faults = [fault.spec.model_dump() for fault in plan.make(scenario(1), seed).faults]
        free += not faults
        targets = [str(fault.get("target", "")) for fault in faults]
        workers = [target for target in targets if target.startswith("worker-")]
        workers += [f"worker-{each['when']['worker']}" for each in faults if each["when"] and "target" not in each]
        assert len(workers) == len(set(workers)), faults
        nodes = [bool(target) and not target.startswith("worker-") for target in targets]
        assert sum(nodes) + sum(fault["name"] == "move-coordinator" for fault in faults) <= 1, faults
        assert all(fault["at_s"] < 30 for fault in faults if fault["at_s"] is not None), faults
    assert 25 < free < 75


@pytest.mark.parametrize("name", sorted(path.stem for path in (paths.scenarios_dir() / "soak").glob("*.toml")))
def test_what_is_drawn_fits_the_pipeline(name: str) -> None:
    loaded = load(paths.scenarios_dir() / "soak" / f"{name}.toml")
    faults = [fault.spec for seed in range(60) for fault in plan.make(loaded, seed).faults]
    assert [wrong for each in faults if (wrong := targets.wrong(each, loaded.workload, loaded.pipeline))] == []
    roles = {str(getattr(each, "target", "")).partition(":")[0] for each in faults}
    names, pipeline = {each.name for each in faults}, loaded.pipeline
    own_ids = pipeline.claim.transactional and pipeline.wiring.transactional_id_scope == "worker"
    grouped = pipeline.wiring.assignment == "group"
    assert ("transaction-coordinator" in roles) == own_ids
    assert ("database" in roles) == (loaded.workload.database == "postgresql")
    of_ids = {"hijack", "expire", "move-coordinator"}
    assert of_ids & names == (of_ids if own_ids else set())
    assert ("drop-response" in names) == pipeline.claim.transactional
    assert ("replace" in names) == (own_ids and not grouped)
    assert ("refuse-writes" in names) == bool(pipeline.topics)
    assert ("delete-records" in names) == (not pipeline.in_database)
    of_nodes = {"kill", "stop", "pause", "log-directory", "reassign"}
    assert {*of_nodes, "partition", "degrade", "kill-worker", "zombie"} <= names
    assert ("rebalances" in names) == (grouped and not pipeline.intermediate_topic)


def drawn(loaded: Scenario) -> set[str]:
    return {fault.spec.name for seed in range(100) for fault in plan.make(loaded, seed).faults}


def test_a_disk_is_filled_if_brokers_have_small_ones() -> None:
    assert "fill-disk" in drawn(load(paths.scenarios_dir() / "faults" / "copy-small-disks-random.toml"))
    assert "fill-disk" not in drawn(scenario(1))


@pytest.mark.parametrize(
    ("work", "never"),
    [
        ({"name": "produce"}, {"zombie", "expire", "hijack", "replace", "drop-response", "move-coordinator"}),
        ({"name": "copy", "transaction_timeout_ms": 60_000}, {"expire", "replace"}),
    ],
)
def test_what_nothing_would_fence_in_time_is_not_drawn(work: dict[str, object], never: set[str]) -> None:
    raw = {"name": "random", "about": "drawn", "workload": {"workers": 3, **work}, "random": {"periods": 2}}
    assert drawn(parse(raw, where="test")) & never == set()


def test_a_coordinator_is_moved_in_the_first_period_only() -> None:
    """The worker that it waits for reaches its transaction before a later period begins, when another node is away."""
    counts = [
        fault.spec.when.count
        for seed in range(300)
        for fault in plan.make(scenario(4), seed).faults
        if fault.spec.name == "move-coordinator" and fault.spec.when is not None
    ]
    assert counts and max(counts) <= 24


def test_workers_that_leave_are_not_hit_by_another_fault() -> None:
    for seed in range(300):
        faults = [fault.spec for fault in plan.make(scenario(1), seed).faults]
        if any(each.name == "rebalances" for each in faults):
            assert not [each for each in faults if each.stops or "worker-" in str(getattr(each, "target", ""))[:7]]


def soaked(*verdicts: str) -> Soak:
    lines = [
        Line(
            scenario="copy",
            seed=seed,
            headline=verdict,
            verdict=verdict,
            as_expected=verdict == "valid",
            expectation="expected valid",
            reasons=["why"],
            faults=["kill"],
            inputs=10,
            outputs=10,
            transactions=2,
            phases={"work": 1.0},
            folder=None,
        )
        for seed, verdict in enumerate(verdicts)
    ]
    return Soak(lines=lines)


def test_fifty_valid_runs_bound_the_chance_of_a_violation() -> None:
    bound = soaked(*["valid"] * 50, "unknown").bound
    assert bound is not None and 0.058 < bound < 0.0583
    assert soaked("valid", "invalid").bound is None
    assert soaked("unknown").bound is None
    assert "| copy, seed 1 | unknown: why |" in soaked("valid", "unknown").summary()


def test_a_soak_holds_when_nothing_was_found_and_nine_in_ten_were_judged() -> None:
    assert soaked(*["valid"] * 9, "unknown").held
    assert not soaked(*["valid"] * 8, "unknown", "unknown").held
    assert not soaked(*["valid"] * 20, "invalid").held
    assert not soaked("unknown").held
    assert not soaked().held
    audited = soaked("valid", "valid")
    audited.lines[1] = replace(audited.lines[1], audit="invalid")
    assert not audited.held
    assert "| audits of the logs alone | 1 none, 1 invalid |" in audited.summary()


def test_what_a_soak_of_hours_used() -> None:
    assert "memory" not in soaked("valid").summary()
    soak = soaked(*["valid"] * 8)
    soak.lines = [
        replace(line, memory_mb=1000.0 + number, disk_mb=5000.0, lag_s=20.0 + number)
        for number, line in enumerate(soak.lines)
    ]
    summary = soak.summary()
    assert "| memory of all processes | at most 1,001 MB in the first quarter, 1,007 MB after it |" in summary
    assert "| used on the disk | at most 5,000 MB in the first quarter, 5,000 MB after it |" in summary
    assert "| time from the end of a run to its verdict | at most 27 s |" in summary


def test_a_soak_of_no_runs_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["soak", "--count", "0"])
    assert ended.value.code == 2
    assert "'0': allowed: a whole number from 1 to " in capsys.readouterr().err


def test_a_soak_that_is_resumed_has_the_same_runs(tmp_path: Path) -> None:
    (tmp_path / "soak.json").write_text(json.dumps([asdict(line) for line in soaked("valid", "unknown").lines]))
    before = read(tmp_path / "soak.json")
    assert before.lines == soaked("valid", "unknown").lines
    with Progress(quiet=True) as progress:
        how = batch.Options(folder=tmp_path, progress=progress, command=lambda *_: "")
        copy = scenario(1).model_copy(update={"name": "copy"})
        assert (
            soak([copy], runs=2, seed=0, options=how, say=lambda _: None, done=before) is before
        )  # there is nothing left to run
        with pytest.raises(BadInput, match="the soak to resume has copy, seed 0; allowed: copy, seed 5"):
            soak([copy], runs=2, seed=5, options=how, say=lambda _: None, done=before)
    (tmp_path / "soak.json").write_text('[{"scenario": "copy"}]')
    with pytest.raises(BadInput, match=r"this is not a file of the runs of a soak: 0\.seed: field required"):
        read(tmp_path / "soak.json")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([{**asdict(soaked("valid").lines[0]), "seed": "0"}], "0.seed: input should be a valid integer"),
        ([{**asdict(soaked("valid").lines[0]), "mood": "good"}], "0.mood: unexpected keyword argument"),
        ({}, "the document: input should be a valid array"),
    ],
)
def test_a_damaged_soak_is_refused(tmp_path: Path, content: object, says: str) -> None:
    (tmp_path / "soak.json").write_text(json.dumps(content))
    with pytest.raises(BadInput, match=re.escape(f"soak.json: this is not a file of the runs of a soak: {says}")):
        read(tmp_path / "soak.json")


_CELL = {"scenario": "x", "kafka": "4.3.1", "client": "java", "features": {}, "group_protocol": "classic"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([dict.fromkeys(_CELL, 1)], "0.scenario: input should be a valid string"),
        ([{**_CELL, "features": {"transaction.version": "2"}}], "0.features.transaction.version: input should be a"),
        ([{**_CELL, "as_expected": 1}], "0.as_expected: input should be a valid boolean"),
        ([{**_CELL, "mood": "good"}], "0.mood: unexpected keyword argument"),
        ([{"scenario": "x"}], "0.kafka: field required"),
        ({}, "the document: input should be a valid array"),
    ],
)
def test_a_damaged_matrix_is_refused(tmp_path: Path, content: object, says: str) -> None:
    (tmp_path / "matrix.json").write_text(json.dumps(content))
    with pytest.raises(BadInput, match=re.escape(f"this is not a file of the cells of a matrix: {says}")):
        matrix.read_json(tmp_path / "matrix.json")


def test_lists_of_runs_that_never_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "soak.json").write_text("[]")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        for reads in (matrix.read_json, read):
            with pytest.raises(BadInput, match=": not a file"):
                reads(path)
    monkeypatch.setattr(documents, "_BYTES_MAX", 1)
    with pytest.raises(BadInput, match="2 bytes; allowed: at most 1"):
        read(tmp_path / "soak.json")


def test_a_matrix_that_was_written_can_be_read(tmp_path: Path) -> None:
    cells = [cell for cell, _ in matrix.cells([scenario(1)], matrix.Axes(features={"transaction.version": [1, 2]}))]
    cells[0] = replace(cells[0], effective=1, result="valid", as_expected=True, seed=4, expectation="expected valid")
    matrix.write(cells, tmp_path)
    assert matrix.read_json(tmp_path / "matrix.json") == cells


def test_a_matrix_that_is_resumed_keeps_its_results() -> None:
    wanted = list(matrix.cells([scenario(1)], matrix.Axes(kafka=["4.3.1", "4.2.0"], features={})))
    done = [replace(wanted[0][0], result="valid", as_expected=True, seed=4), wanted[1][0]]
    again = matrix.resumed(wanted, done)
    assert [cell.result for cell, _ in again] == ["valid", ""]
    with pytest.raises(BadInput, match="other cells than the command"):
        matrix.resumed(wanted, done[:1])


def test_runs_of_equal_clusters_follow_each_other() -> None:
    one, other, third = (Scenario.model_validate({"name": name, "about": "a"}) for name in ("one", "other", "third"))
    other = other.model_copy(update={"cluster": other.cluster.model_copy(update={"version": "3.9.2"})})
    runs = [(each, seed) for seed in (1, 2) for each in (one, other, third)]
    ordered = [(scenario.name, seed) for scenario, seed in batch.by_cluster(runs)]
    assert ordered == [("one", 1), ("third", 1), ("one", 2), ("third", 2), ("other", 1), ("other", 2)]


def test_a_file_stop_ends_a_batch(tmp_path: Path) -> None:
    assert not batch.told_to_stop(tmp_path)
    (tmp_path / "stop").touch()
    assert batch.told_to_stop(tmp_path)
    assert not batch.told_to_stop(tmp_path)


@pytest.mark.parametrize("command", [["soak"], ["matrix", "copy-broker-killed"]], ids=["soak", "matrix"])
def test_what_is_resumed_is_named_by_its_folder(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--resume", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.startswith(
        f"onceproof: {tmp_path / 'none' / command[0]}.json: this is not a file of "
    )
    assert not (tmp_path / "none").exists()


def test_a_soak_continues_in_the_folder_that_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [replace(line, scenario="copy-broker-killed") for line in soaked("valid", "unknown").lines]
    (tmp_path / "soak.json").write_text(json.dumps([asdict(line) for line in lines]))
    monkeypatch.chdir(tmp_path)
    for name in ("machine", "check"):
        monkeypatch.setattr(preflight, name, lambda *_: None)
    monkeypatch.setattr(scenarios, "prepare", list)
    command = ["soak", "copy-broker-killed", "--count", "2", "--seed", "0", "--resume", str(tmp_path)]
    assert main(command) == 1  # one of two runs was unknown
    assert "| runs | 2 |" in (tmp_path / "soak.md").read_text()
    assert not (tmp_path / "runs").exists()
