"""Run folders that are damaged in many ways: `verify` and `report` end in time, in one clear line, without a traceback.

A damaged document is refused with status 2 and the place of the damage. What is found only by a check ends with
`unknown: harness-error`. A damaged table is never `valid`.
"""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from onceproof.cli import commands, main
from onceproof.harness.judge import vacuity
from onceproof.harness.model import plan
from onceproof.harness.record import documents, history, results
from onceproof.harness.record.history import Events
from onceproof.report import report, timeline
from tests.unit.broken import Broken, Change, Key, broken, drop, edit, ended, no_file, put, relined

RUNS = Path(__file__).parents[1] / "mutants" / "runs"
_DEADLINE_S = 120  # on a busy machine; a command that is refused takes less than a second


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run folder with its verdict and its report."""
    folder = tmp_path_factory.mktemp("whole") / "zombie"
    shutil.copytree(RUNS / "zombie", folder)
    assert main.main(["verify", str(folder)]) == commands.AS_EXPECTED
    return folder


@pytest.fixture(autouse=True)
def deadline() -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError(f"the command did not end within {_DEADLINE_S} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(_DEADLINE_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# The facts about the tables

_FACTS = ("mode", "partitions", "positions", "moved", "internal", "rows")
_NEEDED: tuple[tuple[Key, ...], ...] = (("rows", "outputs"), ("partitions", 0, "topic"), ("positions", 0, "partition"))
_WRONG: tuple[tuple[object, tuple[Key, ...]], ...] = (
    ("Full", ("mode",)),
    ("x", ("open_transactions",)),
    ([], ("partitions",)),
    ("x", ("partitions", 0, "start")),
    (-1, ("partitions", 0, "end")),
    (1.5, ("partitions", 1, "high_watermark")),
    (None, ("partitions", 0, "replicas")),
    (1, ("partitions", 0, "leader")),
    (True, ("positions", 0, "offset")),
    (None, ("internal", 0, "compacted")),
    (None, ("internal", 0, "topic")),
    ([1], ("moved",)),
    ("x", ("rows", "outputs")),
    (-1, ("rows", "outputs")),
    (10, ("rows", "others")),
)


def _facts() -> Iterator[Broken]:
    def case(name: str, change: Callable[[Any], object], *keys: Key) -> Broken:
        place = ".".join(map(str, keys))
        return Broken(name=name, change=edit(_COLLECT, change), says=f"{_COLLECT}: {place}")

    yield case("empty", lambda facts: facts.clear(), "schema_version")
    yield case("another version", put(6, "schema_version"), "schema_version")
    yield case("open_transactions missing", drop("open_transactions"), "open_transactions")
    for key in _FACTS:
        yield case(f"{key} missing", drop(key), key)
        yield case(f"{key} null", put(None, key), key)
        yield case(f"{key} a text", put("x", key), key)
    for keys in _NEEDED:
        yield case(f"no {'.'.join(map(str, keys))}", drop(*keys), *keys)
    for value, keys in _WRONG:
        name = f"{'.'.join(map(str, keys))} {value!r}"
        yield case(name, put(value, *keys), *keys)


_COLLECT = "tables/collect.json"
FACTS = list(_facts())


@pytest.mark.parametrize("case", FACTS, ids=[each.name for each in FACTS])
def test_damaged_facts_are_refused(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: Broken
) -> None:
    status, told = ended(capsys, "verify", broken(judged, tmp_path, case))
    assert (status, case.says in told) == (commands.BAD_INPUT, True), told


# The tables

_TABLES = ("outputs.parquet", "inputs.parquet", "batches.parquet", "commits.parquet", "states.parquet")


def _gone(name: str) -> Change:
    def apply(folder: Path) -> None:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return apply


def _garbled(name: str, content: bytes) -> Change:
    return lambda folder: (folder / name).write_bytes(content)


def _tables() -> Iterator[Broken]:
    for name in _TABLES:
        says = f"tables/{name}: no such file, although the tables were collected"
        yield Broken(name=f"no {name}", change=_gone(f"tables/{name}"), says=says)
    yield Broken(name="no ledger", change=_gone("ledger"), says="ledger/sent-*.parquet: no such file")
    yield Broken(name="no facts", change=_gone(_COLLECT), says=f"{_COLLECT}: no such file")
    for name in _TABLES[2:]:
        for what, content in (("empty", b""), ("garbage", b"PAR1xx"), ("long garbage", b"PAR1" + bytes(99) + b"PAR1")):
            says = f"tables/{name}: not a Parquet file: "
            yield Broken(name=f"{what} {name}", change=_garbled(f"tables/{name}", content), says=says)


TABLES = list(_tables())


@pytest.mark.parametrize("case", TABLES, ids=[each.name for each in TABLES])
def test_damaged_tables_are_refused(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: Broken
) -> None:
    status, told = ended(capsys, "verify", broken(judged, tmp_path, case))
    assert (status, case.says in told) == (commands.BAD_INPUT, True), told


@pytest.mark.parametrize("name", ["outputs.parquet", "inputs.parquet"])
def test_a_table_that_spark_cannot_read_is_never_valid(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    def garble(folder: Path) -> None:
        path = folder / "tables" / name
        part = next(path.rglob("*.parquet")) if path.is_dir() else path
        part.write_bytes(b"PAR1" + bytes(99) + b"PAR1")

    status, told = ended(capsys, "verify", broken(judged, tmp_path, Broken(name=name, change=garble, says="")))
    assert status == commands.FAILED, told


@pytest.mark.parametrize("name", ["tables/batches.parquet", "ledger/sent-99999.parquet", "tables/collect.json"])
def test_a_pipe_among_the_tables_is_damage(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    def pipe(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    status, told = ended(capsys, "verify", broken(judged, tmp_path, Broken(name=name, change=pipe, says="")))
    assert status == commands.FAILED, told
    assert f"damaged: {name} is neither a file nor a folder" in told


# Documents and what is no file

_DOCUMENTS = ("plan.json", "workload.json", "history.jsonl", "manifest.json")


@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "loop"])
@pytest.mark.parametrize("name", _DOCUMENTS)
def test_a_document_that_is_no_file_is_refused(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, kind: str
) -> None:
    case = Broken(name=name, change=no_file(name, kind), says="", sealed=False)
    folder = broken(judged, tmp_path, case)
    for command in ("verify", "report"):
        status, told = ended(capsys, command, folder)
        if (name, kind) == ("workload.json", "loop"):  # not there, which the manifest shows; the report says so
            assert command == "report" or "damaged: workload.json is missing" in told
            continue
        assert (status, f"{folder / name}: " in told) == (commands.BAD_INPUT, True), told
        assert kind == "loop" or "not a file" in told


@pytest.mark.parametrize("command", ["verify", "report"])
def test_results_that_are_a_folder_are_refused(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    folder = broken(judged, tmp_path, Broken(name="", change=no_file("results.json", "folder"), says="", sealed=False))
    status, told = ended(capsys, command, folder)
    assert (status, f"{folder / 'results.json'}: " in told) == (commands.BAD_INPUT, True), told


def _of(name: str, key: str, change: Callable[[Any], object], what: str = "") -> Broken:
    return Broken(name=f"{name}: {key} {what}", change=edit(name, change), says=f"{name}: {key}", sealed=False)


DOCUMENTS = [
    _of("manifest.json", "schema_version", lambda raw: raw.clear()),
    _of("manifest.json", "history", drop("history")),
    _of("manifest.json", "files", put([1], "files")),
    _of("manifest.json", "history.bytes", put(1.5, "history", "bytes")),
    _of("plan.json", "seed", put("x", "seed")),
    _of("plan.json", "scenario", drop("scenario"), "missing"),
    _of("plan.json", "scenario", put([], "scenario"), "a list"),
    _of("plan.json", "faults", put("x", "faults"), "a text"),
    _of("plan.json", "faults[0].name", put("nosuch", "faults", 0, "name")),
    _of("plan.json", "workload.partitions", put(10**9, "scenario", "workload", "partitions")),
]


@pytest.mark.parametrize("case", DOCUMENTS, ids=[each.name for each in DOCUMENTS])
def test_damaged_documents_are_refused(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: Broken
) -> None:
    folder = broken(judged, tmp_path, case)
    status, told = ended(capsys, "verify", folder)
    assert (status, case.says in told) == (commands.BAD_INPUT, True), told
    assert ended(capsys, "report", folder)[0] == commands.BAD_INPUT


RESULTS = [
    _of("results.json", "counts.a", put({"a": "b"}, "counts")),
    _of("results.json", "counts", put([], "counts"), "a list"),
    _of("results.json", "seed", put("x", "seed")),
    _of("results.json", "verdict", put("invalid", "verdict")),
]


@pytest.mark.parametrize("case", RESULTS, ids=[each.name for each in RESULTS])
def test_damaged_results_are_refused(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: Broken
) -> None:
    status, told = ended(capsys, "report", broken(judged, tmp_path, case))
    assert (status, case.says in told) == (commands.BAD_INPUT, True), told


@pytest.mark.parametrize("key", ["bytes", "xxh3"])
def test_a_seal_that_does_not_fit_is_damage(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    value = {"bytes": -5, "xxh3": "0"}[key]
    change = edit("manifest.json", put(value, "history", key))
    folder = broken(judged, tmp_path, Broken(name=key, change=change, says="", sealed=False))
    status, told = ended(capsys, "verify", folder)
    assert (status, "damaged: history.jsonl" in told) == (commands.FAILED, True), told


def test_documents_that_are_too_large_are_refused(
    judged: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_BYTES_MAX", 1_000)
    status, told = ended(capsys, "verify", judged)
    assert (status, "history.jsonl: " in told, "allowed: at most 1000" in told) == (commands.BAD_INPUT, True, True)
    monkeypatch.setattr(documents, "_BYTES_MAX", 100)
    status, told = ended(capsys, "verify", judged)
    assert (status, "plan.json: " in told, "allowed: at most 100" in told) == (commands.BAD_INPUT, True, True)


# The history

_LINES: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "empty": (lambda lines: [""], "line 1: expected a header"),
    "no header": (lambda lines: lines[1:], "line 1: expected a header"),
    "cut off": (lambda lines: [*lines[:5], lines[5][:20]], "line 6: cut off in the middle of a line"),
    "deep": (lambda lines: [*lines[:3], "[" * 100_000, *lines[3:]], "line 4: not JSON"),
    "unknown kind": (lambda lines: [*lines[:3], '{"event": "surprise"}', *lines[3:]], "line 4: unknown kind"),
    "a list": (lambda lines: [*lines[:3], "[]", *lines[3:]], "line 4: expected an object"),
}


def _without(*kinds: str) -> Change:
    return relined(lambda lines: [each for each in lines if not any(f'"event": "{kind}"' in each for kind in kinds)])


@pytest.mark.parametrize("name", _LINES)
def test_a_damaged_history_is_refused(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    change, says = _LINES[name]
    folder = broken(judged, tmp_path, Broken(name=name, change=relined(change), says=says))
    for command in ("verify", "report"):
        status, told = ended(capsys, command, folder)
        assert (status, f"history.jsonl: {says}" in told) == (commands.BAD_INPUT, True), told


@pytest.mark.parametrize("run", sorted(path.name for path in RUNS.iterdir()))
def test_a_history_without_one_kind_of_event_can_be_judged_and_shown(run: str) -> None:
    """A fault whose first event, or whose target, is not in the history is not taken for one that took effect."""
    planned, events = plan.read(RUNS / run / "plan.json"), history.read(RUNS / run / "history.jsonl")
    for kind in {each.kind for each in events} - {"history"}:
        left = Events(each for each in events if each.kind != kind)
        reasons = vacuity.vacuous(planned, left)
        assert reasons or kind not in ("fault-target", "fault-injected", "fault-healed") or not planned.faults
        spans = timeline.faults(left)
        assert len(report._faults(left, spans)) == len(spans)


@pytest.mark.parametrize("kinds", [["fault-begins"], ["fault-target", "started"]])
def test_a_history_with_gaps_gets_a_verdict_and_a_report(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kinds: list[str]
) -> None:
    folder = broken(judged, tmp_path, Broken(name="", change=_without(*kinds), says=""))
    assert folder.joinpath("history.jsonl").read_text() != judged.joinpath("history.jsonl").read_text()
    status, told = ended(capsys, "verify", folder)
    assert status in (commands.AS_EXPECTED, commands.NOT_AS_EXPECTED), told
    assert "the report was not written" not in told
    assert ended(capsys, "report", folder)[0] == commands.AS_EXPECTED


# What a report does without, and what it writes


@pytest.mark.parametrize("content", [b'{"work": NaN}', b'{"work": 1e400}', b"[]", b"\xff\xfe", b"", None])
def test_phases_that_are_damaged_are_left_out(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    def change(folder: Path) -> None:
        os.mkfifo(folder / "phases.json") if content is None else (folder / "phases.json").write_bytes(content)

    folder = broken(judged, tmp_path, Broken(name="", change=change, says="", sealed=False))
    assert ended(capsys, "report", folder)[0] == commands.AS_EXPECTED


@pytest.mark.parametrize("name", ["report.html", "junit.xml"])
def test_a_report_that_is_a_folder_is_refused(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    folder = broken(judged, tmp_path, Broken(name=name, change=no_file(name, "folder"), says="", sealed=False))
    status, told = ended(capsys, "report", folder)
    assert (status, f"{folder / name}: a folder" in told) == (commands.BAD_INPUT, True), told


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_report_replaces_a_pipe_or_a_link(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    other = tmp_path / "other"
    other.write_text("mine")

    def change(folder: Path) -> None:
        (folder / "report.html").unlink()
        os.mkfifo(folder / "report.html") if kind == "pipe" else (folder / "report.html").symlink_to(other)

    folder = broken(judged, tmp_path, Broken(name=kind, change=change, says="", sealed=False))
    assert ended(capsys, "report", folder)[0] == commands.AS_EXPECTED
    assert "<canvas" in (folder / "report.html").read_text()
    assert other.read_text() == "mine"


def test_a_verdict_is_printed_although_its_report_cannot_be_written(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = broken(judged, tmp_path, Broken(name="", change=no_file("report.html", "folder"), says="", sealed=False))
    (folder / "results.json").unlink()
    status, told = ended(capsys, "verify", folder)
    assert status == commands.AS_EXPECTED
    assert "zombie: valid" in told
    assert told.splitlines()[-1].startswith("the report was not written: BadInput: ")
    assert results.read(folder / "results.json").verdict == "valid"
