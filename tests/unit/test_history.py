"""The history reads back whole, or is refused with the line that is wrong."""

import re
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from onceproof.harness.base.errors import BadInput, DeadlineError, HarnessError
from onceproof.harness.record import history
from onceproof.harness.record.events import Event, FaultBegins, FaultEvent, FaultInjected, Invoked, Outcome, Ready
from onceproof.harness.record.history import Events, History


@pytest.fixture
def path(tmp_path: Path) -> Path:
    written = History(tmp_path / "history.jsonl")
    written.append("worker-0", Ready(incarnation=1))
    written.append("nemesis", FaultBegins(fault="0-kill", name="kill", open_transactions=[]))
    written.close()
    return tmp_path / "history.jsonl"


def test_it_reads_back(path: Path) -> None:
    assert [event.kind for event in history.read(path)] == ["history", "ready", "fault-begins"]


def test_a_cut_in_the_middle_of_a_line_is_refused(path: Path) -> None:
    path.write_text(path.read_text()[:-9])
    with pytest.raises(BadInput, match="line 3: cut off in the middle of a line"):
        history.read(path)


def test_a_broken_line_is_refused(path: Path) -> None:
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1][:10], lines[2]]) + "\n")
    with pytest.raises(BadInput, match="line 2: not JSON"):
        history.read(path)


def test_another_schema_is_refused(path: Path) -> None:
    path.write_text(path.read_text().replace('"schema_version":3', '"schema_version":1'))
    with pytest.raises(BadInput, match="schema_version 3"):
        history.read(path)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"at": 1.0, "source": "x", "event": "surprise"}', "unknown kind of event 'surprise'"),
        ('{"at": 1.0, "source": "x", "event": ["ready"]}', "unknown kind of event"),
        ('{"at": 1.0, "source": "x", "event": "exited"}', "exited: code: Field required"),
        ('{"at": 1.0, "source": "x", "event": "exited", "code": "0"}', "exited: code: "),
        ('{"at": 1.0, "source": "x", "event": "exited", "code": 0, "mood": "good"}', "exited: mood: "),
        ("[1]", "expected an object"),
        ("[" * 3000, "not JSON"),
    ],
)
def test_a_line_of_an_unknown_kind_or_shape_is_refused(path: Path, line: str, says: str) -> None:
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(BadInput, match=f"line 4: {re.escape(says)}"):
        history.read(path)


def test_events_are_asked_for_by_kind_and_keys(path: Path) -> None:
    events = history.read(path)
    assert events.the(FaultBegins, fault="0-kill").name == "kill"
    assert events.first(FaultBegins, fault="1-kill") is None
    assert [each.incarnation for each in events.of(Ready, source="worker-0")] == [1]
    with pytest.raises(LookupError, match="no FaultBegins"):
        events.the(FaultBegins, fault="1-kill")


def test_events_of_derived_kinds_come_in_the_order_of_arrival(path: Path) -> None:
    events = history.read(path)
    assert events.of(Event) == list(events)
    assert [each.kind for each in Events([*events, *events]).of(FaultEvent)] == ["fault-begins"] * 2
    alternating = Events([events[2], events[1]] * 3)
    assert alternating.of(Event) == list(alternating)
    assert alternating.first(Event) == events[2]


def test_a_wait_ends_with_the_event_or_says_what_it_waited_for(tmp_path: Path) -> None:
    log = History(tmp_path / "h.jsonl")
    threading.Timer(0.1, lambda: log.append("x", Ready())).start()
    assert log.wait("it", Ready, deadline_s=5).source == "x"
    with pytest.raises(DeadlineError, match=r"waited 0\.1 s for the impossible"):
        log.wait("the impossible", Ready, lambda event: False, deadline_s=0.1)
    log.close()


@pytest.fixture
def written(tmp_path: Path) -> Iterator[History]:
    with closing(History(tmp_path / "history.jsonl")) as opened:
        yield opened


def test_forgotten_events_are_read_from_the_file(written: History) -> None:
    written.append("nemesis", FaultInjected(fault="0-kill", name="kill"))
    before = written.events()
    written.forget()
    assert written.events() == before
    after = written.append("nemesis", FaultInjected(fault="1-kill", name="kill"))
    assert written.events() == (*before, after)


def test_events_that_are_not_in_the_file_are_not_forgotten(written: History, monkeypatch: pytest.MonkeyPatch) -> None:

    def full(_: bytes) -> None:
        written.lost = HarnessError("no space left on the device")

    monkeypatch.setattr(written, "_write", full)
    written.append("nemesis", FaultInjected(fault="0-kill", name="kill"))
    written.forget()
    assert written.events().first(FaultInjected) is not None


def test_an_outcome_shares_what_the_call_of_commit_read(written: History, tmp_path: Path) -> None:
    told: dict[str, Any] = {"n": 1, "t": 1.0, "incarnation": 1, "transaction": 1, "records": 2}
    written.append("worker-0", Invoked(**told, sources={"0": (0, 2)}, outputs={}))
    written.append("worker-0", Outcome(**told, sources={"0": (0, 2)}, type="ok"))
    written.append("worker-0", Invoked(**told, sources={"0": (2, 4)}, outputs={}))
    written.append("worker-0", Outcome(**told, sources={"0": (2, 3)}, type="ok"))
    _, call, same, other, differs = history.read(tmp_path / "history.jsonl")
    assert isinstance(call, Invoked) and isinstance(same, Outcome) and same.sources is call.sources
    assert isinstance(other, Invoked) and isinstance(differs, Outcome) and differs.sources == {"0": (2, 3)}
