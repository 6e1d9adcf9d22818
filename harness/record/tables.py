"""The tables of a run's folder: each declared once, for PyArrow that writes them and for Spark that reads them.

    BATCHES.arrow       the schema for PyArrow, with the version in its metadata
    BATCHES.spark       the same columns as Spark's DDL: given and not inferred, since inferring costs a Spark job a
                        table and would let a wrong table pass
    BATCHES.check(path) refuses a file of another version or with other columns

`number` is always the input's number as the payload says it, `digest` Spark's `xxhash64` of key and value, an offset
counts records in a partition, and times are seconds of CLOCK_MONOTONIC.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from onceproof.harness.base.errors import BadInput

SCHEMA_VERSION = 6
_KEY = b"schema_version"
_ARROW = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
}


@dataclass(frozen=True)
class Table:
    """A table: its name in messages, and its columns with their types as Spark names them."""

    name: str
    columns: Mapping[str, str]

    @cached_property
    def arrow(self) -> pa.Schema:
        """The columns for PyArrow, with `schema_version` in the metadata."""
        fields = [(name, _ARROW[kind]) for name, kind in self.columns.items()]
        return pa.schema(fields, metadata={_KEY: str(SCHEMA_VERSION)})

    @property
    def spark(self) -> str:
        """The columns as Spark's DDL."""
        return ", ".join(f"{name} {kind}" for name, kind in self.columns.items())

    def check(self, paths: Iterable[Path]) -> dict[Path, Any]:
        """The footers of files that hold this table. Raises BadInput when one of them is no Parquet file, of another
        schema version, or lacks a column."""
        footers = {}
        for path in paths:
            try:
                footer = pq.read_metadata(path)
            except (OSError, pa.ArrowInvalid) as error:
                raise BadInput(f"{path}: not a Parquet file: {error}") from None
            version = (footer.metadata or {}).get(_KEY, b"none").decode()
            if version != str(SCHEMA_VERSION):
                raise BadInput(f"{path}: schema_version {version}; allowed: {SCHEMA_VERSION}")
            if missing := [name for name in self.columns if name not in footer.schema.names]:
                raise BadInput(f"{path}: the table {self.name} has no column {', '.join(missing)}")
            footers[path] = footer
        return footers


def _table(name: str, columns: str) -> Table:
    return Table(name, dict(column.split() for column in columns.split(", ")))


# What was sent: an input whose offset is null was not acknowledged with its offset, or (`acknowledged` false) not at
# all, so that nobody knows whether it is in the log.
LEDGER = _table("ledger", "number bigint, partition int, offset bigint, digest bigint, acknowledged boolean")
# What the input topic holds; read for the full proof only.
INPUTS = _table("inputs", "partition int, offset bigint, number bigint, digest bigint")
# What a read_committed reader sees at rest. told_0 to told_2: the header as integers (`provenance`); content: the
# digest of the whole record, where `digest` is of a part; total and grouping: of an aggregate.
OUTPUTS = _table(
    "outputs",
    "topic string, partition int, offset bigint, number bigint, digest bigint, told_0 bigint, told_1 bigint, "
    "told_2 bigint, content bigint, total bigint, grouping bigint",
)
# What the live observer saw while the run went on.
OBSERVED = _table("observed", "topic string, partition int, offset bigint, number bigint, digest bigint, at double")
# The batch headers of every replica. producer_id −1: no idempotent producer. control: "commit", "abort" or null.
# fate: what became of the batch (visible, aborted, control, open).
BATCHES = _table(
    "batches",
    "topic string, partition int, broker string, first bigint, last bigint, records int, producer_id bigint, "
    "producer_epoch smallint, sequence int, transactional boolean, control string, crc bigint, coordinator_epoch int, "
    "fate string",
)
# The offsets that the group committed, in the order of its log; `offset` is the place in that log, `position` the
# committed offset of the input partition.
COMMITS = _table(
    "commits",
    "offset bigint, partition int, position bigint, worker int, incarnation int, transaction bigint, "
    "producer_id bigint, producer_epoch smallint, fate string",
)
# The transactions of history.jsonl, as Spark reads them: a line for each `begin`, `invoke` and `outcome`.
TRANSACTIONS = _table(
    "transactions",
    "event string, source string, incarnation int, transaction bigint, type string, t double, "
    "sources map<string,array<bigint>>, outputs map<string,array<bigint>>",
)
