"""What the report explains: the errors that a worker reports in the place of its client."""

import html
from pathlib import Path

import pytest

from onceproof.harness.record import manifest, own_errors
from onceproof.harness.record.results import Results
from onceproof.report import report
from tests.unit.good_run import GoodRun


def page(run: GoodRun, folder: Path) -> str:
    """The report of a run that was judged to be valid."""
    run.write(folder)
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
    assert len(codes) == 3
