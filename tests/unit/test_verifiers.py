"""A good run is valid; one of which something is not known is not. (Each way to break one: tests/mutants.)"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from onceproof.harness.base.errors import BadInput
from onceproof.harness.model import plan
from onceproof.harness.record import manifest
from onceproof.harness.record.history import Events
from onceproof.verifiers import verify as verify_module
from onceproof.verifiers.evidence.check import Check, Judged
from onceproof.verifiers.evidence.tables import Tables
from onceproof.verifiers.verify import verify
from tests.unit.good_run import PREFIX, GoodRun

OUT, IN = f"{PREFIX}-output", f"{PREFIX}-input"


def test_a_good_run_is_valid(spark: SparkSession, good_run: GoodRun, tmp_path: Path) -> None:
    results = verify(good_run.write(tmp_path / "run"))
    assert (results.verdict, results.findings, results.reasons) == ("valid", [], [])
    assert results.counts["inputs"] == results.counts["outputs"] == 80


def unread(run: GoodRun) -> None:
    """The reader missed a record that the log shows as visible: nothing may be called lost."""
    run.outputs.remove(run.output(7))


def short_log(run: GoodRun) -> None:
    gone = [row for row in run.batches if (row["topic"], row["partition"], row["first"]) == (OUT, 1, 0)]
    run.batches = [row for row in run.batches if row not in gone]


def still_written(run: GoodRun) -> None:
    run.moved.append("op-test-1-output/1: 42 → 43")


def never_quiet(run: GoodRun) -> None:
    run.events.pop()


def stalled(run: GoodRun) -> None:
    run.note("stalled", reason="waited 120 s for lag 0")


def start_moved(run: GoodRun) -> None:
    run.inputs = [row for row in run.inputs if row["partition"] != 1 or row["offset"] >= 9]
    next(each for each in run.partitions if (each["topic"], each["partition"]) == (IN, 1))["start"] = 9


def start_moved_further_than_deleted(run: GoodRun) -> None:
    start_moved(run)
    run.note(
        "records-deleted",
        fault="0-delete-records",
        to="behind",
        partitions=[{"partition": 1, "position": 12, "low_watermark": 7}],
    )


def acknowledged_nobody_knows_where(run: GoodRun) -> None:
    """The input below a log start was acknowledged without its offset, and has no output."""
    start_moved(run)
    run.note(
        "records-deleted",
        fault="0-delete-records",
        to="behind",
        partitions=[{"partition": 1, "position": 12, "low_watermark": 9}],
    )
    run.ledger[7].update(offset=None, acknowledged=True)
    run.remove_output(run.output(7))


def compacted(run: GoodRun) -> None:
    run.compact("__consumer_offsets", 3)


def nobody_watched(run: GoodRun) -> None:
    run.observed = []


def fault_missed(run: GoodRun) -> None:
    run.raw["faults"] = [{"name": "kill", "target": "broker-1", "at_s": 1}]
    run.note("fault-missed", fault="0-kill", reason="it did not come")


def zombie_kept_its_partitions(run: GoodRun) -> None:
    run.raw["faults"] = [
        {"name": "zombie", "when": {"worker": 0, "phase": "begun", "count": 1}, "fenced": "generation"}
    ]
    run.note("fault-target", fault="0-zombie", role="worker-0", incarnation=1, partitions=[0])
    for event in ("fault-begins", "fault-injected", "fault-healed"):
        run.note(event, fault="0-zombie", name="zombie", open_transactions=[])
    began = next(event for event in run.events if event["event"] == "begin")
    run.events.insert(-1, {**began, "at": 55.0, "event": "outcome", "type": "ok"})


@pytest.mark.parametrize(
    ("mutate", "kind", "says"),
    [
        (unread, "indeterminate", "incomplete: op-test-1-output/1: 40 visible in the log, the reader saw 39"),
        (short_log, "indeterminate", "incomplete: op-test-1-output/1: 42 offsets, the log's batches account for 22"),
        (still_written, "indeterminate", "somebody wrote while it was read"),
        (never_quiet, "harness-error", "the run ended before it came to rest"),
        (stalled, "stalled", "waited 120 s for lag 0"),
        (start_moved, "indeterminate", "op-test-1-input/1 starts at 9: no fault deleted its records"),
        (start_moved_further_than_deleted, "indeterminate", "starts at 9: no fault deleted its records beyond 7"),
        (acknowledged_nobody_knows_where, "indeterminate", "1 inputs have no output, but a partition is incomplete or"),
        (compacted, "indeterminate", "the group's log was compacted: 3 records of it are gone"),
        (nobody_watched, "vacuous", "the live observer saw nothing of op-test-1-output"),
        (fault_missed, "vacuous", "fault 0-kill never happened: it did not come"),
        (zombie_kept_its_partitions, "vacuous", "was never taken for dead"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_what_is_not_known_is_not_valid(
    spark: SparkSession, good_run: GoodRun, tmp_path: Path, mutate: Callable[[GoodRun], None], kind: str, says: str
) -> None:
    mutate(good_run)
    results = verify(good_run.write(tmp_path / "run"))
    assert any(reason.kind == kind and says in reason.says for reason in results.reasons), results.reasons
    assert results.verdict == "unknown"
    assert not results.findings


def test_a_check_that_raises_is_never_valid(
    spark: SparkSession, good_run: GoodRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> Judged:
        raise RuntimeError("oops")

    check = Check(name="broken", claim="it says oops", run=broken)
    monkeypatch.setattr(verify_module, "all_checks", lambda _: [check])
    results = verify(good_run.write(tmp_path / "run"))
    assert (results.verdict, results.reasons[0].kind) == ("unknown", "harness-error")
    assert "oops" in results.reasons[0].says
    assert (results.checks[0].name, results.checks[0].claim) == ("broken", "it says oops")


@pytest.mark.parametrize(("name", "damages"), [("more", True), ("_SUCCESS", False), (".part-0.crc", False)])
def test_a_file_that_spark_would_read_is_damage(good_run: GoodRun, tmp_path: Path, name: str, damages: bool) -> None:
    folder = good_run.write(tmp_path / "run")
    (folder / "tables" / "outputs.parquet" / "topic=output" / name).write_text("")
    added = f"tables/outputs.parquet/topic=output/{name} was not there when the run was collected"
    assert manifest.damage(folder) == [added] * damages


def test_a_missing_table_is_never_valid(spark: SparkSession, good_run: GoodRun, tmp_path: Path) -> None:
    folder = good_run.write(tmp_path / "run")
    (folder / "tables" / "batches.parquet").unlink()
    results = verify(folder)
    assert (results.headline, len(results.reasons)) == ("unknown: harness-error", 1)
    assert results.reasons[0].says == "damaged: tables/batches.parquet is missing"


def test_a_path_that_spark_takes_for_a_pattern_is_refused(good_run: GoodRun, tmp_path: Path) -> None:
    folder = good_run.write(tmp_path / "run[1]")
    with pytest.raises(BadInput, match=r"run\[1\]: Spark takes a path with one of \*\?\[\]\{\}"):
        verify(folder)


def test_a_ledger_whose_footers_do_not_tell_is_read(spark: SparkSession, good_run: GoodRun, tmp_path: Path) -> None:
    for row in good_run.ledger[:3]:
        row["offset"] = None
    folder = good_run.write(tmp_path / "run")
    [part] = folder.glob("ledger/sent-*.parquet")
    for statistics in (True, False):
        pq.write_table(pq.read_table(part), part, write_statistics=statistics)
        assert Tables(folder, spark, plan.read(folder / "plan.json"), Events()).unplaced == 3


def test_a_ledger_of_another_form_is_never_valid(spark: SparkSession, good_run: GoodRun, tmp_path: Path) -> None:
    folder = good_run.write(tmp_path / "run")
    [part] = folder.glob("ledger/sent-*.parquet")
    pq.write_table(pq.read_table(part).drop_columns(["offset"]), part)
    manifest.seal(folder)
    results = verify(folder)
    assert results.headline == "unknown: harness-error"
    assert "counts" in {check.name for check in results.checks}


_KILLS_SPARK = """
import sys
from pathlib import Path
from onceproof.verifiers import verify
from onceproof.verifiers.evidence.check import Check, Judged

first, *others = verify.all_checks()

def kill(tables):
    context = tables.spark.sparkContext
    if sys.argv[2] == "killed":
        context._gateway.proc.kill()
        context._gateway.proc.wait(20)
    else:
        context._jsc.stop()
    return Judged(compared={})

whole = verify.all_checks
verify.all_checks = lambda _: [first, Check(name="killer", claim="", run=kill), *others]
print(verify.verify(Path(sys.argv[1])).headline)
verify.all_checks = whole
print(verify.verify(Path(sys.argv[1])).headline)
"""


@pytest.mark.parametrize("how", ["killed", pytest.param("stopped", marks=pytest.mark.long)])
def test_a_spark_session_that_ends_in_the_middle_is_never_valid(good_run: GoodRun, tmp_path: Path, how: str) -> None:
    """Between two checks its JVM is killed, or the context in it ends, as it does when it is out of memory; the verdict
    is `unknown`, and the next one has a new session."""
    folder = good_run.write(tmp_path / "run")
    judged = subprocess.run(
        [sys.executable, "-c", _KILLS_SPARK, str(folder), how], capture_output=True, text=True, timeout=240, check=False
    )
    assert judged.stdout.splitlines() == ["unknown: harness-error", "valid"], judged.stderr[-2000:]


@pytest.mark.parametrize(
    ("library", "reasons"), [("confluent-kafka 2.6.1 with librdkafka 2.6.1", 0), ("Java 4.3.1", 1)]
)
def test_a_run_with_another_client_than_asked_for_says_nothing(
    spark: SparkSession, good_run: GoodRun, tmp_path: Path, library: str, reasons: int
) -> None:
    good_run.note("run", command="", versions={"client": "librdkafka==2.6.1"}, names={})
    good_run.note("ready", source="worker-0", incarnation=1, client=library)
    results = verify(good_run.write(tmp_path / "run"))
    assert results.versions["workers' client"] == library
    assert [reason.kind for reason in results.reasons] == ["harness-error"] * reasons
