"""`onceproof list` and `onceproof runs`, as a person and as a program read them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from onceproof.cli import commands, main
from onceproof.harness.base.errors import suggestion
from onceproof.harness.model import registry
from onceproof.suite.batch import _link, _where
from tests.unit.good_run import GoodRun

_COMMAND = (sys.executable, "-m", "onceproof.cli.main")
_DEADLINE_S = 60


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main.main(arguments) == commands.AS_EXPECTED
    return capsys.readouterr().out


def test_each_entry_is_a_line_that_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.split("\t") for line in said(capsys, "list").splitlines()]
    assert {len(line) for line in lines} == {6}
    names = {(kind, name.rpartition("/")[2]): about for kind, name, *_, about in lines}
    for kind in ("workload", "fault", "system"):
        assert {name for found, name in names if found == kind} == set(registry.names(kind))
    assert all(names.values())
    assert not any("…" in about[-1:] for about in names.values())


def test_entries_with_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    every = said(capsys, "list").splitlines()
    some = said(capsys, "list", "Zombie").splitlines()
    assert some == [line for line in every if "zombie" in line.lower()] and 3 < len(some) < len(every)
    found = json.loads(said(capsys, "list", "zombie", "--json"))
    assert [each["name"] for each in found] == [line.split("\t")[1] for line in some]
    assert main.main(["list", "no such word"]) == commands.BAD_INPUT
    assert capsys.readouterr().err.count("\n") == 1


def test_a_reader_that_has_read_enough() -> None:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", '"$@" | head -n 1', "-", *_COMMAND, "list"],
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_runs_with_their_verdicts(
    spark: SparkSession, good_run: GoodRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judged = good_run.write(tmp_path / "runs" / "good-1-20261124T080000")
    good_run.write(tmp_path / "runs" / "all-20261124T090000" / "other-7-20261124T090001")
    main.main(["verify", str(judged)])
    _link(judged)
    _link(judged)
    assert (tmp_path / "runs" / "latest").resolve() == judged
    capsys.readouterr()
    found = json.loads(said(capsys, "runs", "--runs", str(tmp_path / "runs"), "--json"))
    assert [(each["name"], each["seed"], each["verdict"]) for each in found] == [
        ("good", "1", "valid"),
        ("other", "7", "(no results)"),
    ]
    assert main.main(["runs", "--runs", str(tmp_path / "none")]) == commands.BAD_INPUT


def test_a_dry_run_prints_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = tmp_path / "runs"
    plan = json.loads(said(capsys, "run", "copy-broker-killed", "--dry-run", "--seed", "7", "--runs", str(runs)))
    assert (plan["seed"], plan["scenario"]["name"]) == (7, "copy-broker-killed")
    assert plan["faults"] and not list(runs.rglob("plan.json"))


def test_what_was_meant() -> None:
    assert suggestion("copy-brokr-killed", ["copy-broker-killed", "other"]) == "; did you mean copy-broker-killed?"
    assert suggestion("xyz", ["copy-broker-killed"]) == ""


def test_how_far_a_batch_is() -> None:
    assert _where(0, 67, 0.0) == "1 of 67"
    assert _where(2, 67, 120.0) == "3 of 67, about 65 min left"


def test_help_says_what_the_exit_status_means(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(["--help"])
    assert re.search(r"130\s+interrupted", capsys.readouterr().out)
