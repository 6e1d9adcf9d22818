"""junit.xml and the terminal, with texts that contain what neither allows."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.cli import commands
from onceproof.harness.base.text import shown
from onceproof.harness.record.results import Reason, Results
from onceproof.report.junit import Case, junit
from onceproof.report.report import _case


@given(st.text(), st.text(), st.text())
def test_any_text_gives_well_formed_xml(name: str, failure: str, text: str) -> None:
    suite = ElementTree.fromstring(junit("onceproof", [Case(name=name, failure=failure, text=text)]).encode())
    assert suite.get("failures") == str(int(bool(failure)))


def test_cases_are_counted() -> None:
    cases = [Case(name="a"), Case(name="b <&>", failure="not valid", text="lost"), Case(name="c", skipped="no release")]
    suite = ElementTree.fromstring(junit("matrix", cases))
    assert [suite.get(key) for key in ("tests", "failures", "skipped")] == ["3", "1", "1"]
    assert [case.get("name") for case in suite] == ["a", "b <&>", "c"]
    assert suite[1][0].text == "lost"


def results(reason: str) -> Results:
    return Results(
        name="[bold]markup[/] <b>",
        seed=1,
        command="onceproof",
        verdict="unknown",
        as_expected=False,
        expectation="expected [red]valid[/]",
        findings=[],
        reasons=[Reason(kind="harness-error", says=reason)],
        checks=[],
        counts={},
        versions={},
        mode="full",
    )


def test_a_reason_with_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    judged = results("nul \x00, escape \x1b[2J")
    failure = ElementTree.fromstring(junit("onceproof", [_case(judged)]))[0][0]
    assert failure.text == "harness-error: nul \ufffd, escape \ufffd[2J"
    commands.print_results(judged)
    told = capsys.readouterr().out
    assert "\x1b[2J" not in told and "\x00" not in told
    assert "[bold]markup[/] <b>: unknown" in told and "(expected [red]valid[/])" in told


def test_lines_and_tabs_stay() -> None:
    assert shown("a\n\tb\r\x85") == "a\n\tb\ufffd\ufffd"
