"""What the report explains: the errors that a worker reports in the place of its client."""

import html
from pathlib import Path
from typing import Any

import pytest

from onceproof.harness.record import manifest, own_errors
from onceproof.harness.record.results import Results
from onceproof.report import pages, report
from tests.unit.described_run import DescribedRun
from tests.unit.good_run import GoodRun


def page(run: GoodRun, folder: Path, printed: str = "", **more: Any) -> str:
    """The report of a run that was judged to be valid; `printed` is what its first worker has printed."""
    run.write(folder)
    if printed:
        (folder / "processes").mkdir()
        (folder / "processes" / "worker-0.1.log").write_text(printed)
    Results(
        name="good",
        seed=1,
        command="onceproof run good --seed 1",
        verdict="valid",
        as_expected=True,
        expectation="as expected",
        findings=[],
        reasons=[],
        checks=[],
        counts={},
        versions={},
        **more,
    ).write(folder / "results.json")
    manifest.seal_results(folder)
    return html.unescape(report.write(folder).read_text())


def failed(run: GoodRun, code: str) -> None:
    run.note("error", source="worker-0", incarnation=1, n=9, t=50.0, call="process", code=code, text="a text")


@pytest.mark.parametrize(("code", "says"), own_errors.MEANING.items())
def test_an_error_that_no_client_knows_is_explained(good_run: GoodRun, tmp_path: Path, code: str, says: str) -> None:
    assert code.startswith("onceproof:")
    failed(good_run, code)
    said = page(good_run, tmp_path / "run")
    assert f"process: {code}" in said
    assert f"<code>{code}</code> is no error of the client: {says}." in said
    assert said.count("is no error of the client") == 1


def test_an_error_of_the_client_is_not_explained(good_run: GoodRun, tmp_path: Path) -> None:
    failed(good_run, "_TIMED_OUT")
    said = page(good_run, tmp_path / "run")
    assert "process: _TIMED_OUT" in said
    assert "is no error of the client" not in said


def test_each_of_them_has_a_meaning() -> None:
    codes = {value for value in vars(own_errors).values() if isinstance(value, str) and value.startswith("onceproof:")}
    assert codes == set(own_errors.MEANING)
    assert len(codes) == 4


def test_the_level_of_proof_and_what_each_class_rests_on(good_run: GoodRun, tmp_path: Path) -> None:
    classes = {"lost": "by presence", "phantom": "not judged", "duplicate": "by presence"}
    said = page(good_run, tmp_path / "run", level=0, classes=classes)
    assert "valid at level 0</span>" in said and "Level 0 of proof: the outputs were not compared" in said
    assert "<td>by presence<td>lost, duplicate</tr>" in said and "<td>not judged<td>phantom</tr>" in said


def test_what_an_application_printed_last(good_run: GoodRun, tmp_path: Path) -> None:
    printed = "".join(f"line {number}\n" for number in range(1_000)) + "<the last one>\n"
    said = page(DescribedRun(0), tmp_path / "run", printed)
    assert "line 999\n<the last one></pre>" in said and "line 980" not in said
    assert "printed last" not in page(good_run, tmp_path / "other", printed)


def test_a_sentence_begins_with_a_capital_unless_with_a_name() -> None:
    said = [pages.sentence(text) for text in ("offsets are gone", "auto.offset.reset = latest", "")]
    assert said == ["Offsets are gone.", "auto.offset.reset = latest.", ""]
