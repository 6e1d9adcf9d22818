"""The story of a record that is fine, lost, doubled or skipped, as the witnesses of a run tell it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from onceproof.cli.main import main
from onceproof.harness.base.errors import BadInput
from onceproof.harness.record import payload
from onceproof.report import trace
from onceproof.report.folder import Folder
from onceproof.verifiers.verify import verify
from tests.mutants import of_records
from tests.mutants.catalogue import MUTANTS, RUNS
from tests.unit.good_run import PREFIX, GoodRun

assert of_records  # fills MUTANTS


def told(folder: Path, number: int) -> list[tuple[str, str]]:
    story = trace.of_input(Folder(folder), number)
    assert story.title == f"input {number}"
    return [(step.witness, step.says) for step in story.steps]


def broken(folder: Path, change: Callable[[GoodRun], object]) -> Path:
    run = GoodRun()
    change(run)
    return run.write(folder)


def test_an_input_that_is_fine(tmp_path: Path) -> None:
    assert told(broken(tmp_path, lambda _: None), 9) == [
        ("generator", "sent to input/1, acknowledged at offset 4"),
        ("log", "batch 0 to 39 of input/1: no producer id, sequence 0, visible, on broker1"),
        ("worker", "worker-1.1 is about to commit transaction 1, which read input/1 0 to 19"),
        ("worker", "worker-1.1 reported ok for transaction 1, which read input/1 0 to 19"),
        ("outputs", "output/1 offset 4, made by worker-1.1 in transaction 1"),
        (
            "log",
            "batch 0 to 19 of output/1: producer 101 epoch 0, sequence 0, transactional, visible, and the marker at "
            "20, on broker1",
        ),
        ("observer", "read it under read_committed"),
        (
            "group",
            "20 was committed on input/1 by worker-1.1 in a transaction of producer 101 epoch 0, at "
            "__consumer_offsets/0 offset 6, and covers it",
        ),
    ]


def found(folder: Path, mutant: str, cls: str) -> list[tuple[str, str]]:
    """The story of the first input that has a finding of this class in a mutant."""
    run, _ = MUTANTS[mutant].make()
    results = verify(run.write(folder))
    [finding] = [each for each in results.findings if each.cls == cls]
    steps = told(folder, finding.samples[0]["number"])
    assert any(witness == "verdict" and says.startswith(f"{cls}: ") for witness, says in steps)
    return steps


def test_an_input_that_was_lost(tmp_path: Path) -> None:
    steps = found(tmp_path, "lost-in-the-middle", "lost")
    assert ("outputs", "no output of it is visible under read_committed") in steps
    assert any(witness == "group" and says.endswith("covers it") for witness, says in steps)


def test_an_input_with_two_outputs(tmp_path: Path) -> None:
    steps = found(tmp_path, "doubled", "duplicate")
    assert len([says for witness, says in steps if witness == "outputs"]) == 2


def test_an_input_that_a_reset_skipped(tmp_path: Path) -> None:
    def skip(run: GoodRun) -> None:
        run.outputs.remove(run.output(9))
        run.note("position-reset", "worker-1", incarnation=1, n=99, t=1.0, partition=1, expected=4, found=6)

    steps = told(broken(tmp_path, skip), 9)
    assert ("worker", "worker-1.1 was reset from 4 to 6, past it") in steps


def test_the_other_ways_to_ask(tmp_path: Path) -> None:
    folder = Folder(broken(tmp_path, lambda _: None))
    story = trace.of_output(folder, "output", 1, 4)
    assert (story.title, story.steps) == ("output/1 offset 4: input 9", trace.of_input(folder, 9).steps)
    marker = trace.of_output(folder, "output", 1, 20)
    assert [step.witness for step in marker.steps] == ["log", "outputs"]
    key = payload.Keys(1, 10, 0).key(9)
    assert trace.of_input(folder, 9) in trace.of_key(folder, key)
    states = trace.of_transactional_id(folder, f"{PREFIX}-worker-1")
    assert [step.says for step in states.steps[:2]] == [
        "__transaction_state/1 offset 2: PrepareCommit, producer 101 epoch 0, __consumer_offsets/0, output/1",
        "__transaction_state/1 offset 3: CompleteCommit, producer 101 epoch 0",
    ]


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda folder: trace.of_input(folder, 99), "no input has the number 99"),
        (lambda folder: trace.of_output(folder, "output", 1, 99), "output/1 offset 99; allowed: places of output"),
        (lambda folder: trace.of_key(folder, b"none"), "no input has the key 'none'"),
        (lambda folder: trace.of_transactional_id(folder, "x"), f"allowed: {PREFIX}-worker-0, {PREFIX}-worker-1"),
    ],
)
def test_what_nobody_knows(tmp_path: Path, ask: Callable[[Folder], object], says: str) -> None:
    folder = Folder(broken(tmp_path, lambda _: None))
    with pytest.raises(BadInput, match=says):
        ask(folder)


def test_both_services_of_a_chain_are_told_apart() -> None:
    steps = told(RUNS / "chain", 100)
    assert {says.split()[0] for witness, says in steps if witness == "worker"} == {"worker-0.1"}
    assert [says for witness, says in steps if witness == "outputs"] == [
        "output/1 offset 26, made by worker-1.1 in transaction 6"
    ]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(broken(tmp_path, lambda _: None))
    assert main(["trace", folder, "--input", "9"]) == 0
    assert "input 9\n  generator                sent to input/1, " in capsys.readouterr().out
    assert main(["trace", folder, "--output", "output/1:4", "--json"]) == 0
    [story] = json.loads(capsys.readouterr().out)
    assert story["steps"][0] == {
        "witness": "generator",
        "says": "sent to input/1, acknowledged at offset 4",
        "at": None,
    }
    with pytest.raises(SystemExit, match="2"):
        main(["trace", folder, "--output", "output"])
    assert "--output: 'output': allowed: a place such as output/3:19" in capsys.readouterr().err
    assert main(["trace", str(tmp_path / "none"), "--input", "9"]) == 2
    assert "none: no such folder; a run's folder looks like " in capsys.readouterr().err
