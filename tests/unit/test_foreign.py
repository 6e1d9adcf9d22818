"""A file of the user cannot end a command: whatever its code raises, and whenever it runs, one line refuses it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from onceproof.cli import commands, main
from onceproof.harness.base import foreign
from onceproof.harness.base.errors import BadInput, Signalled
from onceproof.harness.model import registry
from onceproof.suite import preflight
from onceproof.verifiers import verify
from tests.unit.test_hostile import GOOD, fault, refuse, table

_DEADLINE_S = 60
_IMPORTS = """import os, sys
from onceproof.harness.model.workload import Workload, one_on_each
def copy(source): return ()
GOOD = dict(name="mine", about="It copies.", transform=copy, expected=one_on_each("output"))
"""
_NAME_EXITS = """
def __getattr__(name):
    if name.startswith("__"): raise AttributeError(name)
    {exits}
"""
_CLASS_EXITS = """
class Mine:
    @property
    def __class__(self): sys.exit(0)
MINE = Mine()
"""
_SHOWN_EXITS = """
class Mine:
    def __repr__(self): sys.exit(0)
MINE = Mine()
"""
_PROBLEM_EXITS = """
class Mine(Workload):
    def problem(self): sys.exit(0)
MINE = Mine(**GOOD)
"""
_FIELD_EXITS = """
class Mine(Workload):
    @property
    def wiring(self): sys.exit(0)
MINE = object.__new__(Mine)
for name, value in GOOD.items(): object.__setattr__(MINE, name, value)
"""
_ERROR_EXITS = """
class Mine(BaseException):
    def __str__(self): sys.exit(0)
raise Mine
"""
_PARAMS_EXIT = """
class Mine:
    @property
    def params(self): sys.exit(0)
MINE = Mine()
"""
_PRINTS = """
print("hello")
if "ONCEPROOF_FILES_TRIED" in os.environ:  # not at the exit of pytest
    import atexit
    atexit.register(print, "bye")
    atexit.register(os.write, 1, b"bye")
MINE = Workload(**GOOD)
"""
_LOADED, _USED = "cannot be loaded: ", "it cannot be used: "

WORKLOADS = {
    "a name that exits": (_NAME_EXITS.format(exits="sys.exit(0)"), f"{_USED}SystemExit: 0"),
    "a name that ends the process": (_NAME_EXITS.format(exits="os._exit(0)"), "it ended the process, with exit status"),
    "a class that exits": (_CLASS_EXITS, f"{_USED}SystemExit: 0"),
    "a representation that exits": (_SHOWN_EXITS, "expected a Workload; got <onceproof_user_mine_"),
    "a problem that exits": (_PROBLEM_EXITS, f"{_USED}SystemExit: 0"),
    "an attribute that exits": (_FIELD_EXITS, f"{_USED}SystemExit: 0"),
    "an error that exits": (_ERROR_EXITS, f"{_LOADED}<onceproof_user_mine_"),
    "KeyboardInterrupt": ("raise KeyboardInterrupt", f"{_LOADED}KeyboardInterrupt"),
    "GeneratorExit": ("raise GeneratorExit", f"{_LOADED}GeneratorExit"),
    "an own BaseException": ("class X(BaseException): pass\nraise X('hm')", f"{_LOADED}X: hm"),
    "a module that removes itself": ("del sys.modules[__name__]\nraise ValueError('hm')", f"{_LOADED}ValueError: hm"),
}


def written(folder: Path, code: str) -> str:
    """The name of what `code` calls MINE."""
    path = folder / "mine.py"
    path.write_text(_IMPORTS + code)
    return f"{path}:MINE"


@pytest.mark.parametrize(("code", "says"), WORKLOADS.values(), ids=WORKLOADS)
def test_a_workload_cannot_end_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str, says: str
) -> None:
    name, path = written(tmp_path, code), tmp_path / "x.toml"
    path.write_text(GOOD.replace("copy", name))
    told = refuse(capsys, ["run", str(path), "--dry-run", "--runs", str(tmp_path / "runs")])
    assert told.startswith(f"onceproof: {path}: workload.name: workload '{name}': ")
    assert says in told


@pytest.mark.parametrize(
    ("code", "where"),
    [
        (_PARAMS_EXIT, lambda name: fault(f'name = "{name}"\nat_s = 1')),
        (_CLASS_EXITS, lambda name: table("cluster", f'system = "{name}"')),
    ],
    ids=["a fault", "a system"],
)
def test_a_fault_or_a_system_cannot_end_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str, where: Callable[[str], str]
) -> None:
    path = tmp_path / "x.toml"
    path.write_text(where(written(tmp_path, code)))
    assert f"{_USED}SystemExit: 0" in refuse(capsys, ["run", str(path), "--dry-run"])


@pytest.mark.parametrize("code", [_CLASS_EXITS, _SHOWN_EXITS], ids=["class", "representation"])
def test_a_check_cannot_end_a_command(tmp_path: Path, code: str) -> None:
    name = written(tmp_path, code)
    says = f"{_USED}SystemExit: 0" if code == _CLASS_EXITS else "expected a Check; got <onceproof_user_mine_"
    with pytest.raises(BadInput) as refused:
        verify.all_checks([name])
    assert str(refused.value).startswith(f"check '{name}': ")
    assert says in str(refused.value)

    class Named:
        checks = (name,)

    assert preflight._checks(Named()) == f"checks[0]: {refused.value}"  # type: ignore[arg-type]


def test_a_file_may_print_while_it_is_loaded_and_at_the_exit(tmp_path: Path) -> None:
    assert registry.workload(written(tmp_path, _PRINTS)).name == "mine"


_WAITS = """
if "ONCEPROOF_FILES_TRIED" not in os.environ:
    open("{there}", "w").close()
    import time
    time.sleep(60)
"""


def test_a_signal_ends_the_command_while_a_file_is_loaded(tmp_path: Path) -> None:
    there = tmp_path / "there"
    path = tmp_path / "x.toml"
    path.write_text(GOOD.replace("copy", written(tmp_path, _WAITS.format(there=there))))
    command = [sys.executable, "-m", "onceproof.cli.main", "run", str(path), "--dry-run"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + _DEADLINE_S
        while not there.exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=_DEADLINE_S)
    assert process.returncode == 128 + signal.SIGTERM, told
    assert "onceproof: interrupted; " in told


def test_only_what_a_signal_raises_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupts(kind: type[KeyboardInterrupt] = KeyboardInterrupt) -> None:
        raise kind

    monkeypatch.setattr(signal, "getsignal", lambda _number: signal.default_int_handler)  # Python's, as in pytest
    with pytest.raises(KeyboardInterrupt):
        foreign.call("it", interrupts)
    monkeypatch.setattr(signal, "getsignal", lambda _number: signal.SIG_IGN)
    with pytest.raises(BadInput, match=r"^it: KeyboardInterrupt$"):
        foreign.call("it", interrupts)
    with pytest.raises(Signalled):
        foreign.call("it", lambda: interrupts(Signalled))


@pytest.mark.parametrize("error", [SystemExit(0), GeneratorExit(), type("Own", (BaseException,), {})("a\nb")])
def test_a_command_that_exits_by_itself_failed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def ends(_options: object) -> int:
        raise error

    monkeypatch.setattr(commands, "doctor", ends)
    assert main.main(["doctor"]) == commands.FAILED
    told = capsys.readouterr().err
    assert told.startswith(f"onceproof: ended by code of a file that it loaded: {type(error).__name__}")
    assert told.count("\n") == 1


def test_the_trial_is_one_process_for_each_name(tmp_path: Path) -> None:
    loads = tmp_path / "loads"
    code = f"with open('{loads}', 'a') as file: file.write(f'{{os.getpid()}} ')\nMINE = OTHER = Workload(**GOOD)\n"
    name = written(tmp_path, code)
    assert registry.workload(name) is registry.workload(name.replace("MINE", "OTHER"))
    pids = loads.read_text().split()
    assert len(pids) == len(set(pids)) == 3
    assert pids.count(str(os.getpid())) == 1
