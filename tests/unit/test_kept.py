"""A verdict that was interrupted is resumed, and nothing else is taken for the result of a check."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from onceproof.harness.base import paths
from onceproof.harness.record.results import CheckResult, Finding
from onceproof.verifiers import completeness, kept
from onceproof.verifiers.evidence.check import Check, Judged
from onceproof.verifiers.kept import Kept
from onceproof.verifiers.verify import verify
from tests.unit.good_run import GoodRun

_DIES = """
import os, signal, sys
from pathlib import Path
from onceproof.verifiers import verify
from onceproof.verifiers.evidence.check import Check

*first, last = verify.all_checks()
verify._CHECKS_AT_ONCE = 1
die = Check(name=last.name, claim=last.claim, run=lambda tables: os.kill(os.getpid(), signal.SIGKILL))
verify.all_checks = lambda _: [*first, die]
verify.verify(Path(sys.argv[1]))
"""
_LOST = Finding(cls="lost", count=1, says="s", samples=[{"offset": 1}])
_ONE = CheckResult(name="completeness", claim="c", findings=[_LOST], reasons=[])


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = paths.jars_dir()
    monkeypatch.setenv("ONCEPROOF_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    paths.jars_dir().symlink_to(jars)


def test_a_killed_verdict_is_resumed(
    spark: SparkSession, good_run: GoodRun, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good_run.output(7)["digest"] += 1
    folder = good_run.write(tmp_path / "run")
    whole = verify(good_run.write(tmp_path / "another"))
    assert whole.verdict == "invalid" and not list(paths.verdicts_dir().iterdir())
    ended = subprocess.run([sys.executable, "-c", _DIES, str(folder)], capture_output=True, timeout=240, check=False)
    assert ended.returncode == -signal.SIGKILL and not (folder / "results.json").exists()
    [left] = paths.verdicts_dir().iterdir()
    assert len(list(left.glob("*.json"))) == len(whole.checks) - 1
    with caplog.at_level("INFO", logger="onceproof"):
        resumed = verify(folder)
    assert f"took the results of {len(whole.checks) - 1} checks" in caplog.text
    assert resumed.headline == whole.headline and not left.exists()
    assert (folder / "results.json").read_text() == (tmp_path / "another" / "results.json").read_text()


def test_what_a_check_depends_on(good_run: GoodRun, tmp_path: Path) -> None:
    """Another history, other tables, or another version of the code: none of them has the result."""
    folder = good_run.write(tmp_path / "run")
    Kept(folder).keep(completeness.CHECK, _ONE)
    assert Kept(folder).of(completeness.CHECK) == _ONE
    assert Kept(good_run.write(tmp_path / "another")).of(completeness.CHECK) is None
    with (folder / "manifest.json").open("a") as file:  # a verdict writes it
        file.write("\n")
    assert Kept(folder).of(completeness.CHECK) == _ONE
    for name in ("history.jsonl", "plan.json", "tables/batches.parquet", "ledger/sent-00000.parquet"):
        told, was = (folder / name).stat(), (folder / name).read_bytes()
        (folder / name).write_bytes(was)
        os.utime(folder / name, ns=(told.st_atime_ns, told.st_mtime_ns))
        assert Kept(folder).of(completeness.CHECK) is None, name
        Kept(folder).keep(completeness.CHECK, _ONE)
    (folder / "tables" / "more").write_text("")
    assert Kept(folder).of(completeness.CHECK) is None
    Kept(folder).keep(completeness.CHECK, _ONE)
    code = tmp_path / "code"
    (code / "verifiers").mkdir(parents=True)
    (code / "verifiers" / "check.py").write_text("")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kept, "_CODE", code)
        assert Kept(folder).of(completeness.CHECK) is None
    assert Kept(folder).of(completeness.CHECK) == _ONE


@pytest.mark.parametrize("damage", ["", "{", '{"schema_version": 1}', '{"schema_version": 2, "result": {}}'])
def test_a_result_that_is_not_whole_is_none(good_run: GoodRun, tmp_path: Path, damage: str) -> None:
    folder = good_run.write(tmp_path / "run")
    Kept(folder).keep(completeness.CHECK, _ONE)
    [file] = paths.verdicts_dir().rglob("*.json")
    file.write_text(damage)
    assert Kept(folder).of(completeness.CHECK) is None


def test_the_results_of_other_peoples_checks_are_not_kept(good_run: GoodRun, tmp_path: Path) -> None:
    def theirs(_: object) -> Judged:
        return Judged(compared={})

    theirs.__module__ = "their.checks"
    folder, check = good_run.write(tmp_path / "run"), Check(name="theirs", claim="c", run=theirs)
    assert Kept(folder).keep(check, _ONE) is _ONE
    assert Kept(folder).of(check) is None


def test_a_check_with_the_name_of_another_one_is_judged(good_run: GoodRun, tmp_path: Path) -> None:
    def theirs(_: object) -> Judged:
        return Judged(compared={"outputs": 1})

    theirs.__module__ = "their.checks"
    folder = good_run.write(tmp_path / "run")
    Kept(folder).keep(completeness.CHECK, _ONE)
    assert Kept(folder).of(Check(name="completeness", claim="c", run=theirs)) is None


def test_what_is_kept_during_a_verdict_is_not_taken_in_it(good_run: GoodRun, tmp_path: Path) -> None:
    now = Kept(good_run.write(tmp_path / "run"))
    now.keep(completeness.CHECK, _ONE)
    assert now.of(completeness.CHECK) is None


def test_what_is_not_resumed_is_removed_after_a_week(good_run: GoodRun, tmp_path: Path) -> None:
    folder = good_run.write(tmp_path / "run")
    Kept(folder).keep(completeness.CHECK, _ONE)
    [left] = paths.verdicts_dir().iterdir()
    os.utime(left, (0, time.time() - 6 * 86_400))
    assert Kept(folder).of(completeness.CHECK) == _ONE
    os.utime(left, (0, time.time() - 8 * 86_400))
    assert Kept(folder).of(completeness.CHECK) is None


def test_a_home_that_is_full_keeps_nothing(good_run: GoodRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    folder = good_run.write(tmp_path / "run")
    monkeypatch.setattr("onceproof.harness.base.files.write", full)
    assert Kept(folder).keep(completeness.CHECK, _ONE) is _ONE
    assert Kept(folder).of(completeness.CHECK) is None
