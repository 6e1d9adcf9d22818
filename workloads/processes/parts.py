"""Tables that grow while a run goes on: written in parts, each whole or not at all."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def write(rows: Sequence[Sequence[Any]], schema: pa.Schema, target: Path) -> None:
    """Write rows, in the schema's order of columns, to a Parquet file. Plain numbers: looking each one up in a
    dictionary of numbers that differ takes a reader longer than reading them."""
    columns: list[Any] = list(zip(*rows, strict=True)) if rows else [[] for _ in schema]
    words = [field.name for field in schema if pa.types.is_string(field.type)]
    partial = target.with_suffix(".tmp")
    pq.write_table(pa.table(columns, schema=schema), partial, use_dictionary=words, compression="none")
    partial.rename(target)
