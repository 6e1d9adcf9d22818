"""What a fault takes long to get is got before the load begins, with a cluster and processes that only note calls."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from onceproof.harness.artifacts import images
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.model import plan
from onceproof.harness.model.scenario import parse
from onceproof.run import ready, wire
from onceproof.run.run import Run

_RAW = {
    "name": "x",
    "about": "a test",
    "workload": {"name": "copy"},
    "faults": [
        {"name": "kill", "target": "broker-1", "at_s": 1},
        {"name": "upgrade", "to": "4.1.2", "at_s": 2},
        {"name": "upgrade", "to": "4.3.1", "at_s": 3},
    ],
}


class Noted:
    """An object whose methods note their names."""

    def __init__(self, calls: list[str]) -> None:
        self._calls = calls

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **_options: self._calls.append(name)


class Standing(Run):
    """A run whose steps before the load only note that they were made, apart from that of the faults."""

    def __init__(self, calls: list[str]) -> None:
        self.plan = plan.make(parse(_RAW, where="test"), 1)
        everything = cast(Any, Noted(calls))
        self.progress = self.cluster = self.history = self._nemesis = self._monitor = everything
        names = ("start", "send_load", "finish_generator")
        workers = {name: getattr(everything, name) for name in names}
        self.workers = cast(Any, SimpleNamespace(**workers, failures=everything))
        self._faults = True
        self.context = SimpleNamespace(plan=self.plan)  # type: ignore[assignment]
        self.folder, self._command = Path("/nowhere"), ""


@pytest.fixture(autouse=True)
def _nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, names in ((ready, ("describe", "make_topics", "await_workers")), (wire, ("start",))):
        for name in names:
            monkeypatch.setattr(module, name, lambda *_, **_options: None)
    monkeypatch.setattr(Run, "_versions", lambda _: {})


def test_faults_are_prepared_before_the_first_inputs_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(images, "kafka", lambda version: calls.append(f"image {version}"))
    Standing(calls).work()
    prepared = [calls.index(f"image {version}") for version in ("4.1.2", "4.3.1")]
    assert max(prepared) < calls.index("start") < calls.index("send_load"), calls
    assert calls.count("send_load") == 1


def test_no_input_is_sent_if_a_fault_cannot_be_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_version: str) -> NoReturn:
        raise HarnessError("there is no such image")

    calls: list[str] = []
    monkeypatch.setattr(images, "kafka", fails)
    with pytest.raises(HarnessError, match="there is no such image"):
        Standing(calls).work()
    assert "send_load" not in calls and "start" not in calls
