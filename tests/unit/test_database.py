"""Outputs and positions in a database: what one transaction holds, who is fenced, and how the rows are read."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from onceproof.harness.base.errors import BadInput
from onceproof.harness.model.databases import address
from onceproof.harness.record import own_errors, payload
from onceproof.harness.record.provenance import packed_owner, provenance
from onceproof.verifiers.collect import database
from onceproof.verifiers.evidence.frames import rows
from onceproof.workloads.clients import ClientError
from onceproof.workloads.clients.database import DatabaseWriter
from onceproof.workloads.clients.sqlite import Sqlite

_TABLES = {"results": "op_1_results", "positions": "op_1_positions", "seen": "op_1_seen"}


def url(folder: Path) -> str:
    return f"jdbc:sqlite:{folder}/database"


def writer(folder: Path, owner: str, *, fenced: bool = True) -> DatabaseWriter:
    made = DatabaseWriter(lambda: Sqlite(url(folder)), _TABLES, owner=owner, fenced=fenced)
    made.start()
    return made


def written(one: DatabaseWriter, number: int, offset: int) -> None:
    one.begin()
    one.send("results", 3, b"k", payload.value(1, number, 100), provenance(3, offset, 0, 2, 7))
    assert one.flush()["results/3"][0] == 1
    one.send_offsets("input", {3: (offset, offset + 1)}, "", None)


def read(spark: SparkSession, folder: Path) -> list[tuple[int, ...]]:
    found = rows(database.of_workers(spark, url(folder), "op_1_results").orderBy("offset"))
    return [(row["offset"], row["number"], row["told_0"], row["told_1"]) for row in found]


@pytest.mark.parametrize(
    ("written", "plain"), [("310", "310"), ("0.5", "0.5"), ("-12.50", "-12.5"), ("100", "100"), ("0", "0")]
)
def test_a_number_without_a_scale_has_no_zeros_at_its_end(spark: SparkSession, written: str, plain: str) -> None:
    number = spark.sql(f"SELECT cast('{written}' AS decimal(38, 18)) AS total")
    assert rows(number.select(database._plain("total"))) == [(plain,)]


def test_rows_and_positions_are_in_one_transaction(spark: SparkSession, tmp_path: Path) -> None:
    one = writer(tmp_path, "a")
    one.take_over([3])
    written(one, 41, 40)
    one.commit()
    written(one, 42, 41)
    one.abort()
    assert database.positions(spark, url(tmp_path), "op_1_positions") == {3: 41}
    assert read(spark, tmp_path) == [(1, 41, 3 * 10**13 + 40, packed_owner(0, 2, 7))]


@pytest.mark.parametrize("fenced", [True, False])
def test_who_takes_a_partition_over_fences_its_owner(spark: SparkSession, tmp_path: Path, fenced: bool) -> None:
    one, other = writer(tmp_path, "a", fenced=fenced), writer(tmp_path, "b", fenced=fenced)
    one.take_over([3])
    written(one, 41, 40)
    one.commit()
    other.take_over([3])
    assert other.positions() == {3: 41}
    if not fenced:
        written(one, 42, 41)
        one.commit()
        assert len(read(spark, tmp_path)) == 2
        return
    with pytest.raises(ClientError) as refused:
        written(one, 42, 41)
    assert (refused.value.code, refused.value.fatal) == (own_errors.FENCED, True)
    one.abort()
    assert len(read(spark, tmp_path)) == 1


def test_positions_in_a_transaction_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    one = writer(tmp_path, "a")
    one.take_over([0, 1])
    one.commit_offsets({0: (0, 5), 1: (0, 9)})
    assert database.positions(spark, url(tmp_path), "op_1_positions") == {0: 5, 1: 9}


@pytest.mark.parametrize(("remembers", "read_twice"), [(None, []), (2, [41, 42, 43]), (0, [41, 42, 43])])
def test_inputs_that_are_delivered_again(
    spark: SparkSession, tmp_path: Path, remembers: int | None, read_twice: list[int]
) -> None:
    for owner in ("a", "b"):
        one = DatabaseWriter(lambda: Sqlite(url(tmp_path)), _TABLES, owner=owner, remembers=remembers)
        one.start()
        one.begin()
        for number in (41, 42, 43):
            one.send("results", 3, b"k", payload.value(1, number, 100), provenance(3, number, 0, 2, 7))
        one.flush()
        one.commit()
    found = [number for _, number, *_ in read(spark, tmp_path)]
    assert sorted(found) == sorted([41, 42, 43, *read_twice])


def test_an_address_may_name_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_USER", "anna")
    assert address("jdbc:postgresql:shop?user={env:SHOP_USER}") == "jdbc:postgresql:shop?user=anna"
    with pytest.raises(BadInput, match=r"\{env:SHOP_KEY\}: this environment variable is not set"):
        address("{env:SHOP_KEY}")
