"""Where a bug is expected, what a run then says of it, and which cells of a matrix make sense."""

from pathlib import Path
from typing import Any

import pytest

from onceproof.harness.artifacts import clients
from onceproof.harness.base.paths import scenarios_dir
from onceproof.harness.judge import expectation
from onceproof.harness.judge.expectation import RunOutcome
from onceproof.harness.model import scenario
from onceproof.harness.model.scenario import Scenario
from onceproof.harness.record.events import Died
from onceproof.harness.record.history import Events
from onceproof.harness.record.results import Finding, Reason
from onceproof.suite import matrix


def bug(name: str) -> Scenario:
    return scenario.load(scenarios_dir() / "bugs" / f"{name}.toml")


def came(*found: str, client: str = "librdkafka", kafka: str = "4.3.1", version: int = 1, **more: Any) -> RunOutcome:
    findings = [Finding(cls=each, count=1, says="") for each in found]
    versions = {"kafka": kafka, "client": client, "transaction.version": str(version)}
    given: dict[str, Any] = {"word": "invalid" if found else "valid", "reasons": (), "events": Events(), **more}
    return RunOutcome(findings=findings, versions=versions, **given)


@pytest.mark.parametrize(
    ("name", "outcome", "result", "met"),
    [
        ("late-end-txn", came("aborted-read"), "proved", True),
        ("late-end-txn", came(), "refuted", False),  # not where it is known to be
        ("late-end-txn", came(client="java", version=2), "refuted", True),
        ("late-end-txn", came("aborted-read", client="java", version=2), "proved", False),  # it should be fixed there
        ("late-end-txn", came("lost"), "", False),
        (
            "late-end-txn",
            came(client="java", version=2, word="unknown", reasons=[Reason(kind="vacuous", says="")]),
            "",
            False,
        ),
        ("late-produce", came(kafka="3.6.0"), "refuted", True),
        ("late-produce", came("hung-transaction", kafka="3.5.2", version=0), "proved", True),
        ("late-marker", came(kafka="4.1.2", version=2, client="java"), "refuted", False),
        ("late-marker", came(kafka="4.2.0", version=2, client="java"), "refuted", True),
        # version 1 everywhere
        ("late-marker", came("aborted-read", "torn-transaction", kafka="4.2.0"), "proved", True),
    ],
)
def test_a_bug_is_expected_where_it_is_not_fixed(name: str, outcome: RunOutcome, result: str, met: bool) -> None:
    judged = expectation.judge(bug(name), outcome)
    assert (judged.result, judged.met) == (result, met)


def test_a_bug_of_liveness_is_an_error_of_the_client_in_a_valid_run() -> None:
    error = Died(call="abort", code="INVALID_TXN_STATE", text="", fatal=True)
    each = bug("abort-of-nothing")
    assert expectation.judge(each, came(events=Events([error]))).result == "proved"
    assert expectation.judge(each, came(events=Events([error.model_copy(update={"fatal": False})]))).result == "refuted"
    assert expectation.judge(each, came("lost", events=Events([error]))).result == ""
    assert not expectation.judge(each, came(events=Events([error]), client="java")).met


@pytest.mark.parametrize(
    ("client", "level", "in_force"),
    [
        ("librdkafka", 2, 1),
        ("librdkafka==2.6.1", 0, 0),
        ("java", 2, 2),
        ("java==3.9.2", 2, 1),
        ("java==4.0.0", 1, 1),
    ],
)
def test_the_transaction_version_in_force_is_the_lower(client: str, level: int, in_force: int) -> None:
    assert clients.transaction_version(client, {"transaction.version": level}) == in_force


def test_cells_that_make_no_sense_say_so() -> None:
    axes = matrix.Axes(
        kafka=["3.9.2", "4.3.1"],
        clients=["librdkafka", "java==3.9.2"],
        features={"transaction.version": [1, 2]},
        protocols=["classic", "consumer"],
    )
    table = [cell for cell, _ in matrix.cells([bug("late-end-txn")], axes)]
    assert len(table) == 16
    assert all(cell.result.startswith("no transaction.version") for cell in table if cell.kafka == "3.9.2")
    there = {(cell.client, cell.group_protocol): cell.result for cell in table if cell.kafka == "4.3.1"}
    assert there["librdkafka", "consumer"] == "" and "preview in java" in there["java==3.9.2", "consumer"]


def test_a_cell_whose_lever_has_nothing_to_hold_says_so() -> None:
    axes = matrix.Axes(kafka=["3.9.2", "4.3.1"], clients=["java"], features={})
    old, new = (cell.result for cell, _ in matrix.cells([bug("abort-of-nothing")], axes))
    assert old == "" and new == "nothing to hold with transaction.version 2"


def cell(kafka: str, result: str) -> matrix.Cell:
    return matrix.Cell(scenario="s", kafka=kafka, client="java", features={}, group_protocol="classic", result=result)


def test_a_release_is_compared_with_the_one_before_it_of_its_line() -> None:
    before = [cell("4.3.0", "valid"), cell("4.2.1", "valid")]
    assert matrix.changes(before, [cell("4.3.1", "valid"), cell("4.2.1", "valid"), cell("4.2.1", "valid")]) == []
    assert matrix.changes(before, [cell("4.3.1", "invalid: lost"), cell("4.2.1", "valid")]) == [
        "changed: s  4.3.x  java  classic: valid (4.3.0) → invalid: lost (4.3.1)"
    ]
    assert matrix.changes(before, before[:1]) == ["changed: s  4.2.x  java  classic: valid (4.2.1) → not there"]


def test_what_a_cell_runs_is_what_it_says(tmp_path: Path) -> None:
    axes = matrix.Axes(kafka=["4.0.2"], clients=["java"], features={"transaction.version": [1]}, protocols=["consumer"])
    [(cell, made)] = matrix.cells([bug("late-end-txn")], axes)
    assert (made.cluster.version, made.cluster.features) == ("4.0.2", {"transaction.version": 1})
    assert (made.workload.client, made.workload.group_protocol) == ("java", "consumer")
    page = matrix.write_page([cell], tmp_path).read_text()
    assert "transaction.version=1" in page
