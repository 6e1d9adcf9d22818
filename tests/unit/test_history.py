"""The history reads back whole, or is refused with the line that is wrong."""

import threading
from pathlib import Path

import pytest

from harness import history
from harness.errors import BadInput, DeadlineError
from harness.history import History


@pytest.fixture
def path(tmp_path: Path) -> Path:
    written = History(tmp_path / "history.jsonl")
    written.append("worker-0", "ready", incarnation=1)
    written.append("nemesis", "fault-begins", fault="0-kill")
    written.close()
    return tmp_path / "history.jsonl"


def test_it_reads_back(path: Path) -> None:
    assert [event["event"] for event in history.read(path)] == ["history", "ready", "fault-begins"]


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
    path.write_text(path.read_text().replace('"schema_version":1', '"schema_version":2'))
    with pytest.raises(BadInput, match="schema_version 1"):
        history.read(path)


def test_a_wait_ends_with_the_event_or_says_what_it_waited_for(tmp_path: Path) -> None:
    log = History(tmp_path / "h.jsonl")
    threading.Timer(0.1, lambda: log.append("x", "wanted")).start()
    assert log.wait("it", lambda event: event["event"] == "wanted", deadline_s=5)["source"] == "x"
    with pytest.raises(DeadlineError, match=r"waited 0\.1 s for the impossible"):
        log.wait("the impossible", lambda event: False, deadline_s=0.1)
    log.close()
