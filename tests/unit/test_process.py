"""The pipe between the harness and its processes, and the frames that an observer reads."""

import io
import struct
import threading
from pathlib import Path
from typing import Any

import pytest

from onceproof.harness.base.errors import BadInput
from onceproof.harness.context.process import Child
from onceproof.harness.model import registry
from onceproof.workloads.processes.observer import framed
from tests import fresh

_DEADLINE_S = 30
_ROOT = Path(__file__).resolve().parents[2]
_PRINTS = """
import os, sys
from onceproof.workloads.processes.child import Child

print("before the configuration")
child = Child.begin()
print('{"event": "outcome", "type": "ok"}', flush=True)
child.emit("ready", client="none")
sys.stderr.write("an error")
child.stopping.wait()
"""


def test_what_a_process_prints_is_not_taken_for_an_event(tmp_path: Path) -> None:
    (tmp_path / "prints.py").write_text(_PRINTS)
    events: list[dict[str, Any]] = []
    started: list[tuple[int, list[dict[str, Any]]]] = []
    read, codes, ended = threading.Event(), [], threading.Event()

    def on_event(event: dict[str, Any]) -> None:
        events.append(event)
        read.set()

    def on_exit(_child: Child, code: int) -> None:
        codes.append(code)
        ended.set()

    child = Child(
        "prints",
        {},
        folder=tmp_path / "processes",
        name="prints.1",
        environment={"PYTHONPATH": f"{tmp_path}:{_ROOT}"},
        on_start=lambda pid: started.append((pid, list(events))),
        on_event=on_event,
        on_exit=on_exit,
    )
    try:
        assert read.wait(_DEADLINE_S), child.log.read_text()
        assert started == [(child.pid, [])]
        assert not child.told_to_stop
        child.send("stop")
        assert child.told_to_stop
        assert ended.wait(_DEADLINE_S)
    finally:
        child.kill()
    assert [event["event"] for event in events] == ["ready"]
    assert codes == [0]
    assert child.log.read_text() == ('before the configuration\n{"event": "outcome", "type": "ok"}\nan error'), (
        "what was printed is kept, in order"
    )


def test_frames_hold_any_key_and_value() -> None:
    records = [
        (3, 2**40, b"a\tb", b"line\nline"),
        (0, 0, None, b"\x00"),
        (1, 7, b"", None),
        (2, 9, b"k", b"v" * 70_000),
    ]
    data = b"".join(
        struct.pack(">iqii", partition, offset, *(-1 if part is None else len(part) for part in (key, value)))
        + (key or b"")
        + (value or b"")
        for partition, offset, key, value in records
    )
    assert list(framed(io.BytesIO(data))) == records
    assert list(framed(io.BytesIO(data[:-1]))) == records[:-1], "an incomplete frame is left out"
    assert list(framed(io.BytesIO(data + b"\x00"))) == records


@pytest.mark.parametrize(
    ("text", "says", "deadline_s"),
    [
        ("import sys\nsys.exit(0)\n", "SystemExit: 0", 60),
        ("import os\nos._exit(0)\n", "it ended the process, with exit status 0", 60),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "it ended the process, with exit status -9", 60),
        ("while True: pass\n", "it did not return within 2 s", 2),
    ],
)
def test_a_file_that_does_not_return_is_refused(
    tmp_path: Path, text: str, says: str, deadline_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_TRIAL_DEADLINE_S", deadline_s)
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(BadInput, match=says):
        registry.workload(f"{path}:MINE")


def test_a_worker_starts_without_what_takes_longer_than_itself() -> None:
    """It loads a workload of ours, too."""
    loads = "from onceproof.workloads.processes import worker; worker.registry.get('workload', 'copy')"
    shows = "import sys; print({'pydantic', 'psycopg', 'pyarrow', 'pyspark'} & sys.modules.keys())"
    assert fresh.printed(f"{loads}; {shows}") == "set()\n"
