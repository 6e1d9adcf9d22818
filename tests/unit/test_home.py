"""`ONCEPROOF_HOME`: a folder that cannot be one is bad input, and a relative one is relative to the current folder."""

from pathlib import Path

import pytest

from onceproof.cli import commands, main
from onceproof.harness.base import paths

_COMMANDS = [
    ["run", "copy-broker-killed"],
    ["matrix", "copy-broker-killed"],
    ["soak"],
    ["check", "copy-broker-killed"],
    ["verify", "."],
    ["images"],
    ["setup"],
    ["clean"],
]


@pytest.mark.parametrize("command", _COMMANDS, ids=" ".join)
@pytest.mark.parametrize("home", ["/dev/null", "/proc/none"])
def test_a_home_that_cannot_be_written_is_refused(
    home: str, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ONCEPROOF_HOME", home)
    monkeypatch.chdir(tmp_path)
    assert main.main(command) == commands.BAD_INPUT
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1
    assert told.err.startswith(f"onceproof: ONCEPROOF_HOME: {home}") and "; allowed: a folder" in told.err


def test_a_relative_home_is_below_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ONCEPROOF_HOME", "h")
    assert paths.clusters_dir() == tmp_path / "h" / "clusters"
