"""A shell completes commands, options and names of scenarios; a wrong name gets a suggestion."""

import argparse
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from onceproof.cli import completion
from onceproof.cli.main import main
from onceproof.cli.parser import parser

_DEADLINE_S = 60
# Calls the function that bash calls when the last word of a line is completed, and prints what it offers.
_BASH = """
complete() { function=${@: -2:1}; }
. "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
"$function"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def printed(capsys: pytest.CaptureFixture[str], shell: str) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def commands() -> list[str]:
    [found] = [each for each in parser()._actions if isinstance(each, argparse._SubParsersAction)]
    return list(found.choices)


@pytest.fixture
def offers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> "Offers":
    (tmp_path / "script").write_text(printed(capsys, "bash"))
    (tmp_path / "work" / "some-runs").mkdir(parents=True)
    for name in ("some-scenario.toml", "some-text.txt"):
        (tmp_path / "work" / name).touch()
    return Offers(tmp_path)


class Offers:
    """What bash offers for a line, in a folder with a folder, a scenario and another file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, line: str) -> set[str]:
        words = line.split(" ")
        command = ["bash", "-c", _BASH, "bash", str(self._folder / "script"), *words]
        done = subprocess.run(
            command, cwd=self._folder / "work", capture_output=True, text=True, timeout=_DEADLINE_S, check=True
        )
        return set(done.stdout.split())


def test_bash_offers_commands_options_scenarios_and_files(offers: Offers) -> None:
    assert offers("onceproof ru") == {"run", "runs"}
    assert offers("onceproof run copy-broker-cut-o") == {"copy-broker-cut-off"}
    assert offers("onceproof matrix copy-broker-killed copy-broker-cut-o") == {"copy-broker-cut-off"}
    assert offers("onceproof run some-") == {"some-scenario.toml", "some-runs"}
    assert offers("onceproof run copy-broker-killed --gr") == {"--group-protocol"}
    assert offers("onceproof run copy-broker-killed --mode ") == {"full", "ledger"}
    assert offers("onceproof verify some-") == {"some-runs"}
    assert offers("onceproof matrix x --against some-t") == {"some-text.txt"}
    assert offers("onceproof completion ") == {"bash", "zsh", "fish"}


@pytest.mark.parametrize("shell", completion._SHELLS)
def test_every_shell_gets_every_command_and_scenario(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = printed(capsys, shell)
    assert len(commands()) >= 15
    for name in (*commands(), "copy-broker-killed", "late-end-txn"):
        assert name in script
    if program := shutil.which(shell):
        checked = subprocess.run([program, "-n"], input=script, capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("rnu", "; did you mean run?; see `onceproof --help`"),
        ("run x --sede 5", "unrecognized arguments: --sede 5; did you mean --seed?; see `onceproof run --help`"),
        ("run x --sede=5", "unrecognized arguments: --sede=5; did you mean --seed?; see `onceproof run --help`"),
        ("run x --mode ful", "; did you mean full?; see `onceproof run --help`"),
        ("completion bsh", "; did you mean bash?; see `onceproof completion --help`"),
        ("run x --bogus", "unrecognized arguments: --bogus; see `onceproof run --help`"),
        ("soak --spark-mastre x", "--spark-mastre; did you mean --spark-master?; see `onceproof soak --help`"),
        ("runs x", "unrecognized arguments: x; see `onceproof runs --help`"),
    ],
)
def test_a_wrong_command_or_option_gets_a_suggestion(line: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(line))
    told = capsys.readouterr()
    assert (ended.value.code, told.out, told.err.count("\n")) == (2, "", 1)
    assert says in told.err
