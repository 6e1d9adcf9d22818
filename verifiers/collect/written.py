"""Write tables as Parquet files: frames by Spark's tasks, and rows that the driver reads."""

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from onceproof.harness.record.tables import Table

_ROWS_AT_ONCE = 20_000
# Version 2 pages store offsets and numbers as differences, in so few bytes that compression gains nothing. A dictionary
# of values that are all different costs time and gains nothing either.
_OPTIONS = {
    "parquet.writer.version": "PARQUET_2_0",
    "parquet.enable.dictionary": "false",
    "compression": "uncompressed",
}


def write(frame: DataFrame, target: Path) -> int:
    """Write a frame as Parquet files into the folder `target`; return the number of rows.

    A folder that Spark has written whole is kept, and one that it has written in part is written anew.
    """
    if not (target / "_SUCCESS").exists():
        frame.write.mode("overwrite").options(**_OPTIONS).parquet(str(target))
    return sum(pq.read_metadata(part).num_rows for part in target.glob("*.parquet"))


def write_rows(rows: Iterable[Mapping[str, Any]], table: Table, target: Path) -> int:
    """Write rows as a Parquet file, some thousands at a time; return their number."""
    count, left = 0, iter(rows)
    with pq.ParquetWriter(target, table.arrow) as writer:
        while some := list(islice(left, _ROWS_AT_ONCE)):
            writer.write_table(pa.Table.from_pylist(some, table.arrow))
            count += len(some)
    return count
