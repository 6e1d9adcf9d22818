"""Tables that grow during a run: they are written in parts, and a part appears in full or not at all."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def write(rows: Sequence[Sequence[Any]], schema: pa.Schema, target: Path) -> None:
    """Write rows, in the schema's order of columns, to the Parquet file `target`.

    The file has another name until it is complete. Numbers are not dictionary-encoded: most of them differ, and a
    dictionary makes reading them slower.
    """
    columns: list[Any] = list(zip(*rows, strict=True)) if rows else [[] for _ in schema]
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    partial = target.with_suffix(".tmp")
    pq.write_table(pa.table(columns, schema=schema), partial, use_dictionary=texts, compression="none")
    partial.rename(target)
