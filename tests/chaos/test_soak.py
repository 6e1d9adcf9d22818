"""A soak of hours judges each run while the next one is executed, and stops at the first finding."""

from pathlib import Path

import pytest

from onceproof.harness.base.paths import scenarios_dir
from onceproof.harness.base.progress import Progress
from onceproof.harness.model import scenario
from onceproof.suite import batch, hours

pytestmark = [pytest.mark.chaos, pytest.mark.long]


def soak(name: str, folder: Path, *, length_h: float) -> tuple[list[batch.Line], list[str]]:
    loaded = scenario.load(scenarios_dir() / name)
    said: list[str] = []
    with Progress(quiet=True) as progress:
        how = batch.Options(folder=folder, progress=progress, command=lambda *_: "")
        done = hours.soak([loaded], hours=length_h, seed=1, options=how, say=said.append)
    return done.lines, said


def kept(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir() if each.is_dir() and not each.is_symlink())


def test_valid_runs_leave_a_line_each(tmp_path: Path) -> None:
    lines, said = soak("faults/copy-broker-killed.toml", tmp_path, length_h=0.02)
    assert len(lines) == len(said) >= 2
    for line in lines:
        assert (line.headline, line.audit, line.folder) == ("valid", "valid", None)
        assert line.lag_s > 0 and line.memory_mb > 0 and line.disk_mb > 0
    assert kept(tmp_path) == []


def test_the_first_finding_ends_it(tmp_path: Path) -> None:
    lines, _ = soak("controls/control-at-least-once.toml", tmp_path, length_h=1)
    assert [line.verdict for line in lines] == ["invalid"]
    assert len(kept(tmp_path)) == 2  # the finding, and the run that was executed while it was judged
    assert (Path(lines[0].folder or "") / "report.html").exists()
