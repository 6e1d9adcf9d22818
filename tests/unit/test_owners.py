"""Where the inputs of an application are, by the ledger or, if an acknowledgement had no offset, by the log."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from onceproof.harness.record.tables import LEDGER
from onceproof.verifiers.collect import owners
from onceproof.verifiers.evidence.frames import rows, small

PARTITION = 10**13


def test_an_input_without_an_offset_is_where_the_log_has_it_first(spark: SparkSession, tmp_path: Path) -> None:
    sent = [
        {"number": 0, "partition": 1, "offset": 5, "digest": 1, "grouping": None, "acknowledged": True},
        {"number": 1, "partition": 0, "offset": None, "digest": 2, "grouping": None, "acknowledged": True},
        {"number": 2, "partition": 0, "offset": None, "digest": 3, "grouping": None, "acknowledged": False},
    ]
    pq.write_table(pa.Table.from_pylist(sent, LEDGER.arrow), tmp_path / "sent-00000.parquet")
    log = small(spark, [(1, 5, 0), (0, 8, 1), (0, 7, 1), (0, 9, 3)], "partition int, offset bigint, number bigint")
    found = {row["number"]: row["told_0"] for row in rows(owners.places(spark, tmp_path, lambda: log))}
    assert found == {0: PARTITION + 5, 1: 7}
