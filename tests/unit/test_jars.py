"""Java of ours is compiled once for what it says, and says where it does not compile."""

import zipfile
from pathlib import Path

import pytest

from onceproof.harness.artifacts import jars
from onceproof.harness.base import paths
from onceproof.harness.base.errors import HarnessError


def test_a_jar_is_made_once_for_what_the_source_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "Answer.java"
    source.write_text("package p; record Answer(int value) {}")
    compiler = jars.compiler().parent
    monkeypatch.setenv("ONCEPROOF_HOME", str(tmp_path / "home"))
    paths.jars_dir().mkdir(parents=True)
    (paths.jars_dir() / jars.COMPILER).symlink_to(compiler)
    made = jars.compiled("answer", [source], [])
    assert zipfile.ZipFile(made).namelist() == ["p/Answer.class"]
    before = made.stat().st_mtime_ns
    assert jars.compiled("answer", [source], []) == made and made.stat().st_mtime_ns == before
    source.write_text("package p; record Answer(long value) {}")
    other = jars.compiled("answer", [source], [])
    assert other != made
    source.write_text("package p; record Answer(")
    with pytest.raises(HarnessError, match=r"Answer\.java and the others do not compile: [\s\S]*Syntax error"):
        jars.compiled("answer", [source], [])
    assert set(paths.jars_dir().glob("*.jar")) == {made, other}


def test_the_data_sources_compile() -> None:
    from onceproof.verifiers.collect import sources

    [made, client] = sources.jars()
    assert {"onceproof/TopicReader.class", "onceproof/SegmentReader.class"} <= set(zipfile.ZipFile(made).namelist())
    assert client.name.startswith("kafka-clients-")
