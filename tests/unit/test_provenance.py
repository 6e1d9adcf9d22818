"""What a worker writes into its header is what Spark makes of it. (How it is read is in the tests of topics.)"""

import pytest
from pyspark.sql import SparkSession

from onceproof.harness.record.provenance import parts_sql, passed_on, provenance, widths
from onceproof.verifiers.evidence.frames import rows

Parts = tuple[int | None, ...]
WIDEST = 99_999, 10**13 - 1, 999, 99_999, 10**10 - 1


def told(header: bytes, *, intermediate: bool = False) -> list[int | None]:
    """The header cut as the source of topics cuts it."""
    found: list[int | None] = []
    for width in widths(intermediate=intermediate):
        found.append(int(header[:width]))
        header = header[width:]
    assert not header
    return [*found, None][:3]


@pytest.mark.parametrize(
    ("cut", "parts"),
    [
        (told(provenance(3, 41, 1, 2, 12)), (3, 41, 1, 2, 12, None, None)),
        (told(provenance(*WIDEST)), (*WIDEST, None, None)),
        (told(passed_on(provenance(3, 41, 1, 2, 12), 2, 1, 7, 3, 44), intermediate=True), (3, 41, 2, 1, 7, 3, 44)),
        ([None, None, None], (None,) * 7),
    ],
)
def test_each_part_is_read_where_it_was_written(spark: SparkSession, cut: list[int | None], parts: Parts) -> None:
    frame = spark.createDataFrame([tuple(cut)], "told_0 bigint, told_1 bigint, told_2 bigint")
    [row] = rows(frame.selectExpr(*parts_sql()))
    assert tuple(row) == parts
