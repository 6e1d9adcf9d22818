"""Exit statuses and one clear line, as a user meets them."""

import json
import logging
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from onceproof.cli import commands, main, terminal
from onceproof.harness.record import manifest
from tests.unit.good_run import GoodRun


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main.main(arguments) == commands.BAD_INPUT
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.mark.parametrize(("quiet", "said"), [(False, "downloading x\n"), (True, "")])
def test_what_takes_long_is_told_while_a_command_runs(
    capsys: pytest.CaptureFixture[str], quiet: bool, said: str
) -> None:
    with terminal.log_shown(quiet=quiet):
        logging.getLogger("onceproof").info("downloading x")
    logging.getLogger("onceproof").info("downloading y")
    assert capsys.readouterr().err == said


def test_an_unknown_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no such scenario; a TOML file, or one of " in refused(capsys, "run", "nothing-like-it")


def test_a_bad_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.toml"
    path.write_text('name = "x"\nabout = "x"\n[workload]\nname = "copy"\n[[faults]]\nname = "flood"\nat_s = 1\n')
    assert "unknown fault 'flood'; allowed: " in refused(capsys, "run", str(path))


@pytest.mark.parametrize("version", ["4", "latest-ish", "2.8.1", "99.1.1"])
def test_a_kafka_version_that_is_none(capsys: pytest.CaptureFixture[str], version: str) -> None:
    assert "kafka version" in refused(capsys, "run", "copy-broker-killed", "--kafka", version)


def test_a_run_folder_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no such folder" in refused(capsys, "verify", str(tmp_path / "none"))
    assert "no tables/" in refused(capsys, "verify", str(tmp_path))
    assert "results.json: no such file" in refused(capsys, "report", str(tmp_path))


def test_a_history_cut_in_the_middle_of_a_line(
    spark: SparkSession, good_run: GoodRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = good_run.write(tmp_path / "run")
    history = folder / "history.jsonl"
    history.write_text(history.read_text()[:-20])
    assert "cut off in the middle of a line" in refused(capsys, "verify", str(folder))


def test_verify_judges_a_folder_again_and_writes_the_report(
    spark: SparkSession, good_run: GoodRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = good_run.write(tmp_path / "run")
    assert main.main(["verify", str(folder)]) == commands.AS_EXPECTED
    assert "valid" in capsys.readouterr().out
    page = (folder / "report.html").read_text()
    assert '<span class="verdict valid">valid</span>' in page
    assert "<canvas" in page
    assert not re.search(r"(src|href)=.https?:|@import|url\(http", page)
    assert json.loads((folder / "results.json").read_text())["verdict"] == "valid"


def test_verify_says_invalid_with_status_1(
    spark: SparkSession, good_run: GoodRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good_run.output(7)["digest"] ^= 1
    folder = good_run.write(tmp_path / "run")
    assert main.main(["verify", str(folder)]) == commands.NOT_AS_EXPECTED
    assert "op-test-1-output/1 offset 3" in capsys.readouterr().out
    assert "op-test-1-output/1 offset 3" in (folder / "report.html").read_text()
    assert 'failures="1"' in (folder / "junit.xml").read_text()


def test_a_report_of_changed_results_is_refused(
    spark: SparkSession, good_run: GoodRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A verdict that was edited, with its hash left as it was, and a history that was."""
    folder = good_run.write(tmp_path / "run")
    assert main.main(["verify", str(folder)]) == 0
    (folder / "phases.json").write_text('{"work": "long"')  # no part of the verdict
    assert main.main(["report", str(folder)]) == 0
    capsys.readouterr()
    for name, old, new in (("results.json", '"seed": 1,', '"seed": 2,'), ("history.jsonl", '"outcome"', '"invoke" ')):
        path, text = folder / name, (folder / name).read_text()
        path.write_text(text.replace(old, new))
        assert path.read_text() != text
        assert main.main(["report", str(folder)]) == 2
        assert f"{path}: not what it was when the run was judged" in capsys.readouterr().err
        path.write_text(text)
    assert main.main(["report", str(folder)]) == 0


def test_no_file_that_a_run_folder_names_is_loaded(
    spark: SparkSession, good_run: GoodRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The workload, a fault and a check by file leave no trace when a folder is judged and reported."""
    folder, trace = good_run.write(tmp_path / "run"), tmp_path / "trace"
    (tmp_path / "mine.py").write_text(f"open({str(trace)!r}, 'w').close()\n")
    mine = f"{tmp_path / 'mine.py'}:MINE"
    plan = json.loads((folder / "plan.json").read_text())
    plan["scenario"] |= {"checks": [mine], "workload": plan["scenario"]["workload"] | {"name": mine}}
    (folder / "plan.json").write_text(json.dumps(plan))
    manifest.seal(folder)
    assert main.main(["verify", str(folder)]) == 1
    assert f"the check {mine} was not judged" in capsys.readouterr().out
    assert main.main(["report", str(folder)]) == 0
    assert not trace.exists()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT reflect('java.lang.System', 'exit', 0) AS topic, partition, number, digest, input FROM inputs",
        "SELECT topic, partition, number, digest, input FROM parquet.`/etc`",
        "ADD JAR '/tmp/x.jar'",
        "SELECT TRANSFORM(number) USING 'touch /tmp/onceproof-was-here' FROM inputs",
        "CREATE TEMPORARY FUNCTION f AS 'x.Y'",
    ],
)
def test_sql_of_a_run_folder_that_is_no_query_on_the_inputs(
    spark: SparkSession, good_run: GoodRun, tmp_path: Path, capsys: pytest.CaptureFixture[str], sql: str
) -> None:
    folder = good_run.write(tmp_path / "run")
    declared = json.loads((folder / "workload.json").read_text()) | {"expected": sql}
    (folder / "workload.json").write_text(json.dumps(declared))
    manifest.seal(folder)
    status = main.main(["verify", str(folder)])
    told = capsys.readouterr()
    if sql.startswith("SELECT reflect"):  # it is parsed as a function, which the session does not have
        assert status == 3 and "UNRESOLVED_ROUTINE" in told.out
    else:
        assert status == 2 and "workload.json: expected: not a query on the inputs: " in told.err
        assert len(told.err.splitlines()) == 1
