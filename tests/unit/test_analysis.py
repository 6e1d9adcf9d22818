"""The written analysis of a folder of runs: what was tested, what was found, with an example, and how to repeat it."""

import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from onceproof.cli.main import main
from onceproof.report import trace
from onceproof.report.folder import Folder
from onceproof.suite import analysis
from onceproof.verifiers.verify import verify
from tests.mutants import of_records
from tests.mutants.catalogue import MUTANTS, RUNS

assert of_records  # fills MUTANTS


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("analysis") / "runs"
    shutil.copytree(RUNS / "zombie", parent / "copy-1-20261101T101010")
    for number, mutant in enumerate(("doubled", "lost-in-the-middle"), 2):
        MUTANTS[mutant].make()[0].write(parent / f"copy-{number}-20261101T101010")
    for each in parent.iterdir():
        verify(each)
    return parent


def test_what_was_found_has_its_story(runs: Path) -> None:
    made = analysis.of(runs, "A <b>title</b> | with marks")
    assert made.counts == {"valid": 1, "unknown": 0, "invalid": 2}
    classes = {found.explained.finding.cls: found for found in made.findings}
    assert {"duplicate", "lost"} <= set(classes)
    lost = classes["lost"]
    number = lost.explained.finding.samples[0]["number"]
    assert lost.story == trace.of_input(Folder(lost.example.folder), number)
    [kind] = made.kinds
    assert kind.says == "2 of 3 runs (9% to 99%)"


def test_a_bug_has_a_row_for_each_client(runs: Path) -> None:
    """Of three runs of one kind, the bug was proved in two."""
    made = analysis.of(runs)
    told = {"valid": "refuted", "invalid": "proved"}
    judged = [
        replace(run, results=replace(run.results, issue="KAFKA-1", result=told[run.results.verdict]))
        for run in made.runs
    ]
    kind = analysis.Kind(kind=("copy", "4.10.0", "librdkafka", "1"), runs=judged)
    older = analysis.Kind(kind=("copy", "4.9.0", "librdkafka", ""), runs=judged[:1])
    text = analysis.markdown(replace(made, runs=judged, kinds=[kind, older]), figure=False)
    assert "| bug | scenario | client | 4.9.0 | 4.10.0 |\n" in text
    assert "| KAFKA-1 | copy | librdkafka | refuted 1 of 1 | proved 2 of 3, refuted 1 of 3 (1) |\n" in text


def test_the_files_hold_together(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analysis", str(runs), "--title", "A <b>title</b> | with marks"]) == 0
    page = Path(capsys.readouterr().out.strip())
    text, html = (runs / "analysis.md").read_text(), page.read_text()
    assert text.startswith("# A \\<b>title\\</b> \\| with marks")
    assert "<h1>A &lt;b&gt;title&lt;/b&gt; | with marks</h1>" in html
    assert '<img src="rates.svg"' in html and (runs / "rates.svg").read_text().lstrip().startswith("<?xml")
    for heading in ("Summary", "What was tested", "Results", "Findings", "How to repeat it"):
        assert f"## {heading}\n" in text and f"<h2>{heading}</h2>" in html
    assert not re.search(r"\n{4,}", text)
    tables = [line for line in text.splitlines() if line.startswith("| generator")]
    assert tables and all(line.count("|") == 4 for line in tables)
    parser = HTMLParser()
    parser.feed(html)
    assert html.count("<table>") >= 5


def test_a_folder_without_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analysis", str(tmp_path)]) == 2
    assert "there is no run with a verdict in this folder" in capsys.readouterr().err
    assert main(["analysis", str(tmp_path / "none")]) == 2
