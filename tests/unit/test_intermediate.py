"""Which records of the intermediate topic were made of inputs that have no output."""

from pathlib import Path

from pyspark.sql import SparkSession

from onceproof.harness.model import plan
from onceproof.harness.record import history
from onceproof.verifiers.evidence.frames import rows, small
from onceproof.verifiers.evidence.intermediate import read_of
from onceproof.verifiers.evidence.tables import Tables
from tests.mutants.catalogue import CHAIN, RUNS, ZOMBIE
from tests.packing import Place
from tests.rundata import RunData

SOURCES = {"0": [100, 110], "1": [50, 60]}
OUTPUTS = {"middle/0": [10, 207, 216], "middle/1": [10, 307, 316]}


def read(
    spark: SparkSession,
    folder: Path,
    *inputs: tuple[int, int],
    sources: dict[str, list[int]] = SOURCES,
    outputs: dict[str, list[int]] = OUTPUTS,
    of: str = CHAIN,
) -> set[Place]:
    """Where inputs were read, by a history of a single transaction: topic, partition, offset."""
    run = RunData.read(RUNS / of)
    told = next(each for each in run.events if each["event"] == "invoke")
    told |= {"sources": sources, "outputs": {f"{run.prefix}{place}": span for place, span in outputs.items()}}
    run.events = [each for each in run.events if each is told or "transaction" not in each]
    run.write(folder)
    tables = Tables(folder, spark, plan.read(folder / "plan.json"), history.read(folder / "history.jsonl"))
    found = rows(read_of(tables, small(spark, inputs, "from_p int, from_o bigint")))
    return {(tables.role(row["from"]), row["from_p"], row["from_o"]) for row in found}


def test_a_transaction_of_the_first_service_tells(spark: SparkSession, tmp_path: Path) -> None:
    assert read(spark, tmp_path / "run", (0, 103)) == {("input", 0, 103), ("middle", 0, 210)}


def test_no_transaction_read_the_input(spark: SparkSession, tmp_path: Path) -> None:
    before, behind, in_the_range_of_another_partition, unread = (0, 99), (0, 110), (1, 103), (2, 103)
    inputs = (before, behind, in_the_range_of_another_partition, unread)
    assert read(spark, tmp_path / "run", *inputs) == {("input", *place) for place in inputs}


def test_a_manifest_does_not_tell(spark: SparkSession, tmp_path: Path) -> None:
    sources = {"0": [100, 110], "1": [50, 60], "2": [70, 80]}
    with_a_gap, with_one_more_than_inputs, of_the_second_service = [10, 207, 217], [11, 307, 317], [10, 407, 416]
    outputs = {"middle/0": with_a_gap, "middle/1": with_one_more_than_inputs, "output/2": of_the_second_service}
    inputs = ((0, 103), (1, 53), (2, 73))
    found = read(spark, tmp_path / "run", *inputs, sources=sources, outputs=outputs)
    assert found == {("input", *place) for place in inputs}


def test_a_pipeline_of_one_service_has_no_intermediate_topic(spark: SparkSession, tmp_path: Path) -> None:
    assert read(spark, tmp_path / "run", (0, 103), of=ZOMBIE) == {("input", 0, 103)}
