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
from tests.unit.described_run import APP, MODEL, STEPS, TOTALS, DescribedRun
from tests.unit.good_run import OFFSETS, PREFIX

_TEXT = "IF(number = 7, NULL, upper(text)) AS text"
NOTHING = {"sql": f"SELECT number, key, {_TEXT} FROM inputs", "compare": "steps"}


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


def swap(run: DescribedRun) -> None:
    """Two outputs of one partition are in the wrong order."""
    first, second = (row for row in run.outputs if row["partition"] == 0 and row["offset"] in (5, 6))
    for name in ("number", "source_offset", "of", "content"):
        first[name], second[name] = second[name], first[name]
    run.observed = []


def vanish(run: DescribedRun) -> None:
    """A commit was acknowledged, but its transaction was aborted, and the next one went on behind it."""
    run.hide("output", 0, 0, 19)
    for batch in run.batches:
        mine = batch["producer_id"] == 100 and (batch["topic"], batch["first"]) in (
            (f"{PREFIX}-output", 20),
            (OFFSETS, 5),
        )
        batch["control"] = "abort" if mine else batch["control"]
        batch["fate"] = "aborted" if (batch["topic"], batch["first"]) == (OFFSETS, 4) else batch["fate"]
    for state in run.states:
        if (state["producer_id"], state["offset"]) in ((100, 2), (100, 3)):
            state["state"] = state["state"].replace("Commit", "Abort")
    for commit in run.commits:
        if (commit["partition"], commit["transaction"]) == (0, 1):
            commit["fate"] = "aborted"


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


def write_nothing(run: DescribedRun) -> None:
    """An output has no value."""
    run.contents[7]["value"] = None


def write_no_keys(run: DescribedRun) -> None:
    """No input and no output has a key, and each total is that of all inputs."""
    for each in run.load:
        each["key"] = None
    for number in run.contents:
        run.contents[number] = {"key": None, "value": json.dumps({"total": 79 * 40}).encode()}


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
    (write_nothing, {"level": 2}, {"corrupted": 1}),
    (write_nothing, {"level": 1, "model": {"sql": f"SELECT number, {_TEXT} FROM inputs"}}, {}),
    (write_nothing, {"level": 1, "model": NOTHING}, {}),
    (write_no_keys, {"level": 0, "model": TOTALS}, {}),
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


@pytest.mark.parametrize(
    ("change", "each", "classes"),
    [
        (repeat, "1..2", {}),
        (repeat, "0..1", {"duplicate": 2}),
        (swap, "1..2", {"reordered": 1}),
        (vanish, "0..1", {"torn-transaction": 1}),
        (vanish, "0..2", {"torn-transaction": 1}),
        (vanish, "1..2", {"lost": 20}),
    ],
)
def test_outputs_that_may_be_absent_excuse_nothing_else(
    spark: SparkSession,
    tmp_path: Path,
    change: Callable[[DescribedRun], None],
    each: str,
    classes: dict[str, int],
) -> None:
    run = DescribedRun(level=1, outputs={"output": {"input": "json: $.number", "each": each}})
    change(run)
    assert found(verify(run.write(tmp_path / "run"))) == classes


def leave(run: DescribedRun) -> None:
    """The last ten inputs of a partition have not been processed."""
    run.positions[0] = 30


def forget_a_place(run: DescribedRun) -> None:
    """The acknowledgement of an input had no offset, and ledger mode does not look for it in the log."""
    run.ledger[7]["offset"] = None
    run.mode = "ledger"


@pytest.mark.parametrize(
    ("change", "kind", "says"),
    [
        (leave, "stalled", "10 inputs are at or above the committed offset"),
        (forget_a_place, "indeterminate", "1 inputs have no known offset"),
    ],
)
def test_a_model_by_key_is_compared_with_what_was_processed(
    spark: SparkSession, tmp_path: Path, change: Callable[[DescribedRun], None], kind: str, says: str
) -> None:
    run = DescribedRun(level=0, model=TOTALS)
    change(run)
    results = verify(run.write(tmp_path / "run"))
    assert any(each.kind == kind and says in each.says for each in results.reasons), results.reasons


@pytest.mark.parametrize(
    ("totals", "wrong"), [([820], 0), ([820, 820], 1), ([7], 1), ([7, 820], 2), ([820, 900], 1), ([], 1)]
)
def test_each_row_of_a_table_counts(spark: SparkSession, tmp_path: Path, totals: list[int], wrong: int) -> None:
    """The totals of the keys k0 to k3 are 760 to 820. Of k3 the table has these rows."""
    run = DescribedRun(
        level=0,
        app={**APP, "transactional": False, "position": "group"},
        outputs={"output": {"jdbc": "{env:DATABASE}"}},
        model=TOTALS,
    )
    table = [*((f"k{key}", 760 + 20 * key) for key in range(3)), *(("k3", total) for total in totals)]
    first = run.outputs[0]
    run.outputs = [{**first, "partition": 0, "offset": of, "of": of} for of in range(len(table))]
    run.contents = {
        of: {"key": key.encode(), "value": json.dumps({"key": key, "total": total}).encode()}
        for of, (key, total) in enumerate(table)
    }
    run.partitions = [each for each in run.partitions if each["topic"].endswith("input")]
    run.batches = [each for each in run.batches if each["topic"].endswith("input")]
    run.observed = run.states = []
    assert found(verify(run.write(tmp_path / "run"))) == ({"wrong-aggregate": wrong} if wrong else {})


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


@pytest.mark.parametrize(
    ("position", "seldom"),
    [
        ("in-transaction", set()),
        ("transactional", {"zombie-write", "offset-divergence", "unprotected"}),
        ("group", {"zombie-write"}),
    ],
)
def test_what_the_offsets_of_an_application_can_show(position: str, seldom: set[str]) -> None:
    raw = DescribedRun(level=2, app={**APP, "position": position}).raw
    checks = [CheckResult(name=each, claim="") for needed in levels.FOUND_BY.values() for each in needed]
    found = levels.classes(parse(raw, where="test").pipeline, checks)
    assert {cls for cls, how in found.items() if how == levels.PRESENCE} == seldom


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
