"""Run folders on storage that executors share: what Spark reads there, and storage that is gone or refuses a file."""

import shutil
import socket
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from onceproof.cli import main
from onceproof.cli.commands import BAD_INPUT
from onceproof.harness.base.errors import BadInput, HarnessError
from onceproof.verifiers.evidence import storage
from onceproof.verifiers.evidence.storage import Storage
from onceproof.verifiers.verify import verify
from tests.mutants.catalogue import MUTANTS
from tests.mutants.of_transactions import half_committed_within_a_topic

_MUTANT = half_committed_within_a_topic.__name__.replace("_", "-")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return MUTANTS[_MUTANT].make()[0].write(tmp_path / "here" / "copy 1%")


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_spark_reads_the_copy(spark: SparkSession, run: Path, tmp_path: Path) -> None:
    there = Storage("local[2]", f"file://{tmp_path}/there/{run.name}")
    there.put(run)
    judged = verify(run, at=there)
    assert (judged.verdict, judged) == ("invalid", verify(run))
    before = (run / "results.json").read_bytes()
    shutil.rmtree(tmp_path / "there" / run.name / "tables" / "outputs.parquet")
    with pytest.raises(HarnessError, match="its files were changed while the run was judged"):
        verify(run, at=there)
    assert (run / "results.json").read_bytes() == before


def test_a_folder_comes_back_as_it_was(spark: SparkSession, run: Path, tmp_path: Path) -> None:
    there = Storage("local[2]", f"file://{tmp_path}/there/run")
    there.put(run)
    (run / "plan.json").write_text("{}")
    there.put(run)  # in place of what was there
    there.put_files(run, ["plan.json"])
    there.fetch(tmp_path / "back")
    assert files(tmp_path / "back") == files(run)
    assert [each.name for each in (tmp_path / "there").iterdir()] == ["run"]


def test_a_copy_in_part_is_damage(spark: SparkSession, run: Path, tmp_path: Path) -> None:
    there = Storage("local[2]", f"file://{tmp_path}/there/run")
    there.put(run)
    shutil.rmtree(tmp_path / "there" / "run" / "ledger")
    there.fetch(tmp_path / "back")
    judged = verify(tmp_path / "back", at=there)
    assert judged.verdict == "unknown"
    assert "is missing" in judged.reasons[0].says
    (tmp_path / "there" / "run" / "manifest.json").unlink()
    with pytest.raises(BadInput, match=r"there/run: no folder with a manifest\.json; allowed: the URI of a run folder"):
        there.fetch(tmp_path / "again")


@pytest.mark.parametrize("where", ["here", "here/copy 1%", "here/copy 1%/tables", "", "other"])
def test_nothing_else_is_replaced_by_a_copy(spark: SparkSession, run: Path, tmp_path: Path, where: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("of somebody else")
    before = files(tmp_path)
    with pytest.raises(BadInput, match=r"allowed: another folder|is not replaced$"):
        Storage("local[2]", f"file://{tmp_path}/{where}").put(run)
    assert files(tmp_path) == before


def test_storage_that_refuses_is_an_error_in_one_line(spark: SparkSession, run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    uri = f"file://{tmp_path}/file/run"
    with pytest.raises(HarnessError) as error:
        Storage("local[2]", uri).put(run)
    assert str(error.value).startswith(f"{uri}: ") and "\n" not in str(error.value)
    with pytest.raises(HarnessError, match=r"hdfs://127\.0\.0\.1:1/run: ConnectException: .*Connection refused$"):
        Storage("local[2]", "hdfs://127.0.0.1:1/run").put(run)
    with pytest.raises(HarnessError, match=r"^nothing://run: \w+: No FileSystem for scheme"):
        Storage("local[2]", "nothing://run").put(run)
    with pytest.raises(HarnessError, match=r"`spark\.jars\.packages` .* adds org\.apache\.hadoop:hadoop-aws:3\."):
        Storage("local[2]", "s3a://bucket/run").put(run)


def test_storage_that_is_silent_is_not_waited_for(
    spark: SparkSession, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_ANSWER_DEADLINE_S", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        there = Storage("local[2]", f"hdfs://127.0.0.1:{silent.getsockname()[1]}/run")
        with pytest.raises(HarnessError, match=r"/run: waited 2 s for an answer$"):
            there.fetch(run / "back")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["s3a://"], "allowed: SCHEME://…/FOLDER, such as s3a://bucket/runs"),
        (["runs/copy-1", "--storage", "bucket"], "'bucket': allowed: SCHEME://…/FOLDER"),
        (["s3a://bucket/copy-1", "--storage", "s3a://bucket"], "--storage: not with s3a://bucket/copy-1"),
    ],
)
def test_no_uri_is_bad_input(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status: object = main.main(["verify", *arguments])
    except SystemExit as ended:  # an option that is refused
        status = ended.code
    assert status == BAD_INPUT
    assert says in capsys.readouterr().err


def test_a_folder_is_judged_by_its_uri(spark: SparkSession, run: Path, tmp_path: Path) -> None:
    there = tmp_path / "there" / "run"
    Storage("local[2]", f"file://{there}").put(run)
    assert main.main(["verify", f"file://{there}/"]) == 1
    assert verify(run).verdict == "invalid"
    assert (there / "results.json").read_bytes() == (run / "results.json").read_bytes()
    assert (there / "report.html").stat().st_size > 10_000
