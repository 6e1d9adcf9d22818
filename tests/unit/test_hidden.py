"""What a read_committed reader does not see: read when a finding asks for it, judged when the scenario does."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from onceproof.harness.record import manifest
from onceproof.harness.record.results import Results
from onceproof.harness.record.tables import OUTPUTS
from onceproof.verifiers.collect import collect
from onceproof.verifiers.evidence.frames import rows
from onceproof.verifiers.verify import verify
from tests.unit.good_run import GoodRun
from tests.unit.still_cluster import StillContext


def samples(results: Results, cls: str) -> list[dict[str, Any]]:
    return [sample for finding in results.findings if finding.cls == cls for sample in finding.samples]


def hide_second_transaction(run: GoodRun) -> None:
    """What KAFKA-17754 leaves: a transaction that its worker saw committed is aborted in the log."""
    run.hidden = []
    run.hide("output", 0, 21, 40)


def test_a_lost_record_is_shown_where_it_is_hidden(spark: SparkSession, good_run: GoodRun, tmp_path: Path) -> None:
    hide_second_transaction(good_run)
    hidden = good_run.hidden
    good_run.hidden = None
    folder = good_run.write(tmp_path / "run")
    looks = []

    def look() -> None:
        looks.append(1)
        good_run.hidden = hidden
        good_run.write_hidden(folder)
        manifest.add(folder, folder / "tables" / "hidden.parquet")

    results = verify(folder, look=look)
    assert len(looks) == 1
    first = samples(results, "lost")[0]
    assert [(each["topic"], each["partition"], each["number"], each["fate"]) for each in first["hidden"]] == [
        ("output", 0, first["number"], "aborted")
    ]
    again = verify(folder)  # and needs no cluster any more
    assert samples(again, "lost")[0]["hidden"] == first["hidden"] and not again.reasons


def test_nobody_looks_when_all_is_well(spark: SparkSession, good_run: GoodRun, tmp_path: Path) -> None:
    def look() -> None:
        pytest.fail("nothing was found, and yet the topics were read again")

    assert verify(good_run.write(tmp_path / "run"), look=look).verdict == "valid"


@pytest.mark.parametrize("taken", [0, 1])
def test_a_scenario_may_ask_that_hidden_records_agree_with_the_log(
    spark: SparkSession, good_run: GoodRun, tmp_path: Path, taken: int
) -> None:
    good_run.raw["collect"] = {"read_uncommitted": True}
    hide_second_transaction(good_run)
    assert good_run.hidden
    del good_run.hidden[:taken]
    says = [reason.says for reason in verify(good_run.write(tmp_path / "run")).reasons]
    wanted = "output/0: 20 aborted in the log, a read_uncommitted reader saw 19 that are not visible"
    assert any(wanted in each for each in says) == bool(taken)


def test_hidden_records_are_those_that_no_read_committed_reader_saw(
    spark: SparkSession, good_run: GoodRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = good_run.write(tmp_path / "run")
    seen = spark.read.schema(OUTPUTS.spark).parquet(str(folder / "tables" / "outputs.parquet")).drop("topic")
    other = seen.where("partition = 1 AND offset = 3").selectExpr("* EXCEPT (offset)", "99L AS offset")
    monkeypatch.setattr(collect, "read_outputs", lambda *_: {"output": seen.unionByName(other)})
    collect.collect_hidden(StillContext().context, folder)
    hidden = spark.read.parquet(str(folder / "tables" / "hidden.parquet"))
    assert [(row["topic"], row["partition"], row["offset"]) for row in rows(hidden)] == [("output", 1, 99)]
    assert manifest.damage(folder) == []
