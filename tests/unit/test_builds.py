"""An application is built once before a run, and what does not build is refused in one line."""

import sys
from pathlib import Path

import pytest

from onceproof.harness.artifacts import builds
from onceproof.harness.base.errors import BadInput
from onceproof.harness.model.app import AppSpec


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONCEPROOF_HOME", str(tmp_path / "home"))
    (tmp_path / "orders").mkdir()
    monkeypatch.chdir(tmp_path / "orders")
    return tmp_path / "home"


def python(code: str) -> tuple[str, ...]:
    return sys.executable, "-c", code


def test_what_a_build_makes_is_in_its_folder(home: Path) -> None:
    command = *python("import sys, pathlib; pathlib.Path(sys.argv[1]).write_text('made')"), "{build}/orders"
    app = AppSpec(command=("{build}/orders",), build=command)
    app.prepare()
    [made] = (home / "builds").glob("orders-*/orders")
    assert made.read_text() == "made" and made.parent == builds.folder(app.build, Path.cwd())


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("no-such-compiler", "."), "app.build: 'no-such-compiler': no such program; allowed: one that is installed"),
        (
            python("import sys; sys.exit('orders.go:7: undefined: x')"),
            "ended with exit status 1: orders.go:7: undefined",
        ),
    ],
)
def test_what_does_not_build_is_refused(command: tuple[str, ...], says: str) -> None:
    with pytest.raises(BadInput) as refused:
        AppSpec(command=("{build}/orders",), build=command).prepare()
    assert says in str(refused.value)


def test_a_java_file_that_is_missing_is_refused() -> None:
    app = AppSpec.model_validate({"command": ["java", "-cp", "{classpath}"], "java": {"sources": ["None.java"]}})
    with pytest.raises(BadInput, match=r"app\.java\.sources: .*None\.java: no such file"):
        app.prepare()


def test_the_folder_of_a_build_needs_a_build() -> None:
    with pytest.raises(ValueError, match="allowed only with a key build"):
        AppSpec(command=("{build}/orders",))


def test_an_application_has_a_folder_of_its_own(tmp_path: Path, home: Path) -> None:
    (tmp_path / "payments").mkdir()
    write = python("import pathlib, sys; pathlib.Path(sys.argv[1], pathlib.Path.cwd().name).touch()")
    app = AppSpec(command=("{build}/payments",), build=(*write, "{build}"), folder="../payments")
    app.prepare()
    assert (builds.folder(app.build, app.place) / "payments").exists()
    with pytest.raises(BadInput, match=r"app\.folder: \.\./none: no such folder"):
        app.model_copy(update={"folder": "../none"}).prepare()
