"""How a command ends that is interrupted before it has begun, and what it prints on a stdout that cannot show it."""

import os
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_DEADLINE_S = 60
_COMMAND = (sys.executable, "-m", "onceproof.cli.main")
_SCRIPT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["onceproof"]
# Sends a signal to itself when it begins to import a module, at a moment that does not depend on the machine's speed.
_INTERRUPTED = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.{signal})

sys.meta_path.insert(0, Finder())
sys.argv = ["onceproof", "list"]
{start}
"""
_STARTS = {
    "script": "from {} import {} as main; sys.exit(main())".format(*_SCRIPT.split(":")),
    "module": "import runpy; runpy.run_module('onceproof.cli.main', run_name='__main__')",
}


@pytest.mark.parametrize(
    ("start", "name", "sent"),
    [
        ("script", "rich.markup", signal.SIGINT),
        ("script", "pydantic", signal.SIGTERM),
        ("module", "pydantic", signal.SIGINT),
    ],
)
def test_a_command_that_is_interrupted_while_it_imports_modules(start: str, name: str, sent: signal.Signals) -> None:
    code = _INTERRUPTED.format(name=name, signal=sent.name, start=_STARTS[start])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=_DEADLINE_S, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (128 + sent, b"onceproof: interrupted\n", b"")


def test_a_signal_that_is_ignored_does_not_end_it() -> None:
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    code += _INTERRUPTED.format(name="pydantic", signal="SIGINT", start=_STARTS["script"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=_DEADLINE_S, check=False)
    assert (done.returncode, done.stderr) == (0, b"") and b"copy-broker-killed" in done.stdout


@pytest.mark.parametrize(
    "environment", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
def test_characters_that_stdout_cannot_encode_become_question_marks(environment: dict[str, str]) -> None:
    own = {key: value for key, value in os.environ.items() if key != "PYTHONIOENCODING"}
    done = subprocess.run(
        [*_COMMAND, "--help"], env={**own, **environment}, capture_output=True, timeout=_DEADLINE_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"run scenarios ? Kafka versions" in done.stdout


@pytest.mark.parametrize(("closed", "status"), [(">&-", 0), ("2>&-", 0), ("<&- >&- 2>&-", 0)])
def test_a_stream_that_is_closed_is_no_error(closed: str, status: int) -> None:
    line = f"{shlex.join((*_COMMAND, 'list', 'bank'))} {closed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, timeout=_DEADLINE_S, check=False)
    assert (done.returncode, done.stderr) == (status, b"")
    assert (b"bank" in done.stdout) == (closed == "2>&-")


def test_an_error_on_a_closed_stderr_keeps_its_status() -> None:
    line = f"{shlex.join((*_COMMAND, 'run', 'no-such-scenario'))} 2>&-"
    done = subprocess.run(["sh", "-c", line], capture_output=True, timeout=_DEADLINE_S, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
