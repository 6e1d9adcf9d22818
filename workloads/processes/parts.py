"""Tables that grow during a run: they are written in parts, and a part appears in full or not at all."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


class Parts:
    """Collects the rows of a table, and writes them into a folder as FILE-00000.parquet and so on, `most` rows each."""

    def __init__(self, folder: Path, file: str, schema: pa.Schema, *, most: int) -> None:
        self._folder, self._file, self._schema, self._most = folder, file, schema, most
        self._rows: list[Sequence[Any]] = []
        self._written = 0
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, *row: Any) -> None:
        """Add a row, in the schema's order of columns, and write a part if it is full."""
        self._rows.append(row)
        if len(self._rows) >= self._most:
            self.write()

    def write(self) -> None:
        """Write the rows that are not written yet as the next part."""
        write(self._rows, self._schema, self._folder / f"{self._file}-{self._written:05d}.parquet")
        self._rows, self._written = [], self._written + 1


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
