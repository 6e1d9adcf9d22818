"""An application's run is judged as far as its contract allows, and the results say how far that is."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from onceproof.harness.model.contract import BAIT
from onceproof.harness.model.scenario import parse
from onceproof.harness.record.results import CheckResult, Results
from onceproof.verifiers import levels
from onceproof.verifiers.verify import verify
from tests.unit.described_run import MODEL, STEPS, TOTALS, DescribedRun


def found(results: Results) -> dict[str, int]:
    return {each.cls: sum(e.count for e in results.findings if e.cls == each.cls) for each in results.findings}


@pytest.mark.parametrize(
    ("tables", "level", "word"),
    [
        ({"level": 0}, 0, "valid at level 0"),
        ({"level": 1}, 1, "valid at level 1"),
        ({"level": 2}, 2, "valid"),
        ({"level": 1, "model": STEPS}, 2, "valid"),
        ({"level": 0, "model": TOTALS}, 2, "valid"),
    ],
)
def test_a_good_run_is_valid_at_its_level(
    spark: SparkSession, tmp_path: Path, tables: dict[str, object], level: int, word: str
) -> None:
    results = verify(DescribedRun(**tables).write(tmp_path / "run"))  # type: ignore[arg-type]
    assert (results.findings, results.reasons) == ([], [])
    assert (results.level, results.headline) == (level, word)


def lose(run: DescribedRun) -> None:
    run.remove_output(run.outputs[7])


def repeat(run: DescribedRun) -> None:
    run.insert_output(run.outputs[7], after=run.outputs[7]["offset"], counted=True)


def eat_bait(run: DescribedRun) -> None:
    """An output was made from an input that the generator had aborted."""
    of_bait = {"number": BAIT + 3, "source_partition": None, "source_offset": None}
    run.insert_output({**run.outputs[7], **of_bait}, after=run.outputs[7]["offset"], counted=True)


def elsewhere(run: DescribedRun) -> None:
    """An output lies in the other partition; the contract says that it may, or may not."""
    row = run.outputs[0]
    run.remove_output(row)
    other = next(each for each in run.outputs if each["partition"] != row["partition"])
    run.insert_output({**row, "partition": other["partition"]}, after=other["offset"] - 1, counted=True)


def write_wrong(run: DescribedRun) -> None:
    content = json.loads(run.contents[7]["value"])
    run.contents[7]["value"] = json.dumps({**content, "text": "wrong"}).encode()


def end_wrong(run: DescribedRun) -> None:
    """The last total of a key is wrong."""
    run.contents[79]["value"] = json.dumps({"total": 1}).encode()


def go_on_wrong(run: DescribedRun) -> None:
    """A total in the middle is wrong, and the last one of its key right."""
    run.contents[7]["value"] = json.dumps({"total": 1}).encode()


def delete_the_last(run: DescribedRun) -> None:
    """The last record of a key is a tombstone."""
    run.contents[79]["value"] = None


CASES: list[tuple[Callable[[DescribedRun], None], dict[str, object], dict[str, int]]] = [
    (lose, {"level": 0}, {}),
    (lose, {"level": 1}, {"lost": 1}),
    (lose, {"level": 2}, {"lost": 1}),
    (repeat, {"level": 0}, {}),
    (repeat, {"level": 1}, {"duplicate": 2}),
    (repeat, {"level": 2}, {"duplicate": 2}),
    (eat_bait, {"level": 1}, {"aborted-read": 1}),
    (write_wrong, {"level": 1}, {}),
    (write_wrong, {"level": 2}, {"corrupted": 1}),
    (end_wrong, {"level": 0, "model": TOTALS}, {"wrong-aggregate": 1}),
    (go_on_wrong, {"level": 0, "model": TOTALS}, {}),
    (go_on_wrong, {"level": 1, "model": STEPS}, {"wrong-aggregate": 1}),
    (delete_the_last, {"level": 0, "model": TOTALS}, {"wrong-aggregate": 1}),
]


@pytest.mark.parametrize(
    ("change", "tables", "classes"), CASES, ids=lambda each: each.__name__ if callable(each) else str(each)[:40]
)
def test_what_is_found_at_a_level(
    spark: SparkSession,
    tmp_path: Path,
    change: Callable[[DescribedRun], None],
    tables: dict[str, object],
    classes: dict[str, int],
) -> None:
    run = DescribedRun(**tables)  # type: ignore[arg-type]
    change(run)
    assert found(verify(run.write(tmp_path / "run"))) == classes


@pytest.mark.parametrize(("partition", "classes"), [("any", {}), ("input", {"corrupted": 1})])
def test_a_contract_says_where_outputs_must_be(
    spark: SparkSession, tmp_path: Path, partition: str, classes: dict[str, int]
) -> None:
    run = DescribedRun(level=1, outputs={"output": {"input": "json: $.number", "partition": partition}})
    elsewhere(run)
    assert found(verify(run.write(tmp_path / "run"))) == classes


@pytest.mark.parametrize(("each", "classes"), [("1", {"lost": 1}), ("0..1", {}), ("2", {"lost": 80}), ("0..2", {})])
def test_a_contract_says_how_many_outputs_an_input_has(
    spark: SparkSession, tmp_path: Path, each: str, classes: dict[str, int]
) -> None:
    run = DescribedRun(level=1, outputs={"output": {"input": "json: $.number", "each": each}})
    lose(run)
    assert found(verify(run.write(tmp_path / "run"))) == classes


def test_rows_of_a_table_are_in_no_log() -> None:
    workload = parse(
        {
            "name": "rows",
            "about": "rows of a table",
            "app": {"command": ["rows"], "transactional": False, "position": "group"},
            "outputs": {"rows": {"jdbc": "{env:DATABASE}", "input": "key"}},
        },
        where="test",
    ).pipeline
    assert (workload.topics, workload.judged, workload.compared) == ((), (), ("rows",))
    checks = [CheckResult(name=name, claim="", compared={}) for name in ("atomicity", "exactly-once", "zombies")]
    found = levels.classes(workload, checks)
    assert [found[cls] for cls in ("lost", "aborted-read", "torn-transaction", "zombie-write", "reordered")] == [
        "proved",
        "by presence",
        "not judged",
        "by presence",
        "not judged",
    ]


def test_the_results_say_of_each_class_how_far_it_was_judged(spark: SparkSession, tmp_path: Path) -> None:
    told = [verify(DescribedRun(level).write(tmp_path / str(level))).classes for level in (0, 1, 2)]
    assert all(len(each) == 17 for each in told)
    assert [each["lost"] for each in told] == ["by presence", "proved", "proved"]
    assert [each["phantom"] for each in told] == ["not judged", "proved", "proved"]
    assert [each["corrupted"] for each in told] == ["not judged", "by presence", "proved"]
    assert [each["input-lost"] for each in told] == ["proved"] * 3
    assert [each["wrong-aggregate"] for each in told] == ["not judged"] * 3, "with `each`, a wrong output is corrupted"
    by_model = verify(DescribedRun(0, model=TOTALS).write(tmp_path / "totals")).classes
    assert by_model["duplicate"] == "by the model" and by_model["wrong-aggregate"] == "proved"
    assert MODEL["sql"] != TOTALS["sql"]
