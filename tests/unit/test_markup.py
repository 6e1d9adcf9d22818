"""Texts of others (issues, results, what a client says) are printed as they are: no markup, no control characters."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from onceproof.cli import commands
from onceproof.harness.base.progress import Progress
from onceproof.harness.model.scenario import parse
from onceproof.suite import matrix

_ISSUE = "K-1 [/bold] \x1b[2J<b>"
_SHOWN = "K-1 [/bold] \ufffd[2J<b>"


def test_a_table_shows_markup_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    commands.table(["issue"], [(_ISSUE,), ("[red]x[/red]",)])
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == ["issue", _SHOWN, "[red]x[/red]"]


def test_a_line_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    commands.say(_ISSUE)
    assert capsys.readouterr().out == f"{_SHOWN}\n"


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_moves_no_cursor(terminal: bool) -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=terminal, highlight=False, width=200)
    with Progress(console=console) as progress:
        progress.say(_ISSUE)
        progress.phase("work")
        progress.live(_ISSUE)  # would raise an error of the markup
    assert _SHOWN in written.getvalue() and _ISSUE not in written.getvalue()


def test_the_page_of_a_matrix_escapes_the_result_of_a_cell_that_was_not_run(tmp_path: Path) -> None:
    scenario = parse({"name": "x", "about": "x", "workload": {"name": "copy"}}, where="test")
    [(cell, _)] = matrix.cells([scenario], matrix.Axes(features={}))
    ran = replace(cell, result=_ISSUE, report="a/report.html", as_expected=True)
    page = matrix.write_page([replace(cell, result=_ISSUE), ran], tmp_path).read_text()
    assert page.count("&lt;b&gt;") == 2 and "<b>" not in page
    assert page.count('<a href="a/report.html">') == 1
