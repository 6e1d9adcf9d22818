"""What commands write for other programs: JSON of a documented shape, a summary in Markdown, and a badge."""

import json
import re
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from pydantic import TypeAdapter

from onceproof.cli import machine, reference
from onceproof.cli.main import main
from onceproof.report import documents
from onceproof.report.badge import badge
from onceproof.suite import matrix
from onceproof.suite.matrix import Cell
from onceproof.suite.soak import Soak
from tests.mutants import of_records
from tests.mutants.catalogue import MUTANTS

assert of_records  # fills MUTANTS


@pytest.fixture
def doubled(tmp_path: Path) -> Path:
    return MUTANTS["doubled"].make()[0].write(tmp_path / "run")


def test_a_verdict_as_json(doubled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["verify", str(doubled), "--json", "-"])
    printed = capsys.readouterr().out
    told = TypeAdapter(documents.JudgedRun).validate_json(printed)
    assert told.results.headline == "invalid: duplicate" and told.folder == str(doubled)
    assert Path(told.report).is_file()
    main(["verify", str(doubled), "--json", str(tmp_path / "told.json")])
    assert json.loads((tmp_path / "told.json").read_text()) == json.loads(printed)
    assert "invalid: duplicate" in capsys.readouterr().out


def test_an_audit_as_json(doubled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["audit", "--run", str(doubled), "--json", "-"])
    told = TypeAdapter(documents.AuditDocument).validate_json(capsys.readouterr().out)
    assert told.verdict in ("valid", "unknown", "invalid") and told.ids


def test_a_file_that_cannot_be_written_is_refused_before(doubled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(doubled), "--json", str(doubled)]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_soak_as_json() -> None:
    told = TypeAdapter(documents.SoakDocument).validate_python(Soak().document())
    assert (told.valid, told.bound, told.held) == (0, None, False)


def test_every_key_of_a_document_is_described() -> None:
    page = reference.pages()["json.md"]
    assert not re.findall(r"^\| `\w+` \| [^|]+ \| *\|$", page, re.MULTILINE)


def test_a_summary_cannot_break_its_table(tmp_path: Path) -> None:
    summary = machine.Summary(
        headline="1 of 2 <b>", good=False, heads=("a", "b"), rows=[("x | y", "two\nlines <script>")]
    )
    options = Namespace(summary=tmp_path / "summary.md", badge=tmp_path / "badge.svg", json=None)
    for _ in range(2):
        machine.write_summary(options, summary)
    text = options.summary.read_text()
    assert text.count("### onceproof: 1 of 2 &lt;b>") == 2  # it is appended
    assert "| x \\| y | two lines &lt;script> |" in text
    root = ElementTree.fromstring(options.badge.read_text())
    assert root.attrib["aria-label"] == "onceproof: 1 of 2 <b>" and "#ab091e" in options.badge.read_text()
    assert "#2f7d31" in badge("onceproof", "valid", good=True)


def test_a_matrix_bounds_the_rate_of_a_bug() -> None:
    cell = Cell(
        scenario="late-end-txn",
        kafka="4.3.1",
        client="java",
        features={},
        group_protocol="classic",
        result="refuted",
        as_expected=True,
    )
    other = replace(cell, client="librdkafka", result="proved")
    said = matrix.bounds([*[cell] * 3, *[other] * 3, replace(other, result="refuted"), replace(cell, kafka="3.9.2")])
    assert said == [
        "late-end-txn  4.3.1  java  classic: refuted in 3 runs: rate below 63% at 95%",
        "late-end-txn  4.3.1  librdkafka  classic: proved in 3 of 4 runs (19% to 99%)",
    ]
