"""The schemas of the tables in a run folder, for PyArrow and for Spark.

    BATCHES.arrow         the schema for PyArrow, with the schema version in its metadata
    BATCHES.spark         the same columns as Spark DDL. Inferring them would cost one Spark job per table and accept a
                          table with wrong columns
    BATCHES.check(paths)  refuses files of another schema version or without one of the columns

In every table, `number` is the input's number as the payload contains it, `digest` is Spark's `xxhash64(key, value)`,
`grouping` is `xxhash64(key)`, `offset` is a Kafka offset, and times are seconds of CLOCK_MONOTONIC.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from onceproof.harness.base import files
from onceproof.harness.base.errors import BadInput

SCHEMA_VERSION = 7
_KEY, _SPARK = b"schema_version", b"org.apache.spark.version"
_ARROW = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "array<string>": pa.list_(pa.string()),
    "binary": pa.binary(),
}


@dataclass(frozen=True)
class Table:
    """A table: its name, and its columns with the names of their Spark types."""

    name: str
    columns: Mapping[str, str]

    @cached_property
    def arrow(self) -> pa.Schema:
        """The schema for PyArrow, with `schema_version` in its metadata."""
        fields = [(name, _ARROW[kind]) for name, kind in self.columns.items()]
        return pa.schema(fields, metadata={_KEY: str(SCHEMA_VERSION)})

    @property
    def spark(self) -> str:
        """The columns as Spark DDL."""
        return ", ".join(f"{name} {kind}" for name, kind in self.columns.items())

    def check(self, paths: Iterable[Path]) -> dict[Path, Any]:
        """Return the Parquet footers of the files of this table, by path. A path may be a folder that Spark wrote.

        Raises BadInput when a file is not a Parquet file, is of another schema version, or lacks a column, and when a
        folder has no file. Files that
        Spark has written have no schema version of their own; that of their run is in collect.json.
        """
        footers = {}
        for path in chain.from_iterable(map(_parts, paths)):
            try:
                files.regular(path)
                footer = pq.read_metadata(path)
            except (OSError, pa.ArrowInvalid) as error:
                raise BadInput(f"{path}: not a Parquet file: {error}") from None
            told = footer.metadata or {}
            version = told.get(_KEY, b"none").decode()
            if version != str(SCHEMA_VERSION) and _SPARK not in told:
                raise BadInput(f"{path}: schema_version {version}; allowed: {SCHEMA_VERSION}")
            if missing := [name for name in self.columns if name not in footer.schema.to_arrow_schema().names]:
                raise BadInput(f"{path}: the table {self.name} has no column {', '.join(missing)}")
            footers[path] = footer
        return footers


def _parts(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    if found := sorted(path.glob("*.parquet")):
        return found
    raise BadInput(f"{path}: no Parquet file in this folder")


def _table(name: str, columns: str) -> Table:
    return Table(name, dict(column.split() for column in columns.split(", ")))


# The inputs that the generator sent. `offset` is null if the acknowledgement had no offset or, with `acknowledged`
# false, if there was none, so that the input may or may not be in the log.
LEDGER = _table(
    "ledger", "number bigint, partition int, offset bigint, digest bigint, grouping bigint, acknowledged boolean"
)
# The inputs of an application with a contract of its own, as the generator sent them.
LOAD = _table("load", "number bigint, key binary, value binary")
# The records of the input topic; read in mode `full` only. `grouping` is null if the pipeline has no aggregate.
INPUTS = _table("inputs", "partition int, offset bigint, number bigint, digest bigint, grouping bigint")
# The output records that a read_committed reader sees after the run. `told_0` to `told_2` are the provenance header as
# integers, `content` is the digest of the whole record if `digest` covers a part of it, and an aggregation has its
# `total` and `grouping`.
OUTPUTS = _table(
    "outputs",
    "topic string, partition int, offset bigint, number bigint, digest bigint, told_0 bigint, told_1 bigint, "
    "told_2 bigint, content bigint, total bigint, grouping bigint",
)
# The content of the same records; only if an application has a model of its own. `header` is that of its contract.
CONTENTS = _table("contents", "topic string, partition int, offset bigint, key binary, value binary, header binary")
# The output records that the live observer read during the run; `at` is the time of reading.
OBSERVED = _table("observed", "topic string, partition int, offset bigint, number bigint, digest bigint, at double")
# The headers of the record batches of every replica, with their first and last offsets. `producer_id` is -1 without an
# idempotent producer. `control` is "commit" or "abort" for a transaction marker, otherwise null. `fate` is "visible",
# "aborted", "control" or "open", and `marker` the offset of the marker that decided it. `intact` says whether the bytes
# have the header's CRC; it is null if they were not read.
BATCHES = _table(
    "batches",
    "topic string, partition int, broker string, first bigint, last bigint, records int, producer_id bigint, "
    "producer_epoch smallint, sequence int, transactional boolean, control string, crc bigint, coordinator_epoch int, "
    "marker bigint, intact boolean, fate string",
)
# The offsets that the groups of the pipeline committed on the topics that they read, in the order of each group's
# partition of `__consumer_offsets`, which is `log`. `offset` is the offset of the commit in that partition, `position`
# the committed offset of the partition of `topic`, and `committed_ms` the broker's wall-clock time of the commit.
COMMITS = _table(
    "commits",
    "topic string, log int, offset bigint, partition int, position bigint, worker int, incarnation int, "
    "transaction bigint, committed_ms bigint, producer_id bigint, producer_epoch smallint, transactional boolean, "
    "marker bigint, fate string",
)
# The records of `__transaction_state` about the transactional ids of the run, in the order of their partition, which is
# `log`. `state` is as Kafka spells it (PrepareCommit, …) or "Tombstone"; `partitions` are the "topic/partition" of the
# transaction, `version` is the transaction version of the client (KIP-890).
STATES = _table(
    "states",
    "log int, offset bigint, transactional_id string, producer_id bigint, producer_epoch smallint, state string, "
    "partitions array<string>, version smallint",
)
# The requests that the workers' clients sent, as the request proxy saw them. `at` and `answered` are the times of the
# request and of its response, which is null if none came. `request` and `response` are JSON, by the names of Kafka's
# message definitions; of a Produce, `batches` has the headers of the record batches in place of the records.
REQUESTS = _table(
    "requests",
    "at double, answered double, worker int, link string, connection int, correlation int, api int, version int, "
    "client string, request string, response string",
)
# The transactions of history.jsonl as Spark reads them, one row for each event `begin`, `invoke` and `outcome`.
TRANSACTIONS = _table(
    "transactions",
    "event string, source string, incarnation int, transaction bigint, type string, t double, "
    "sources map<string,array<bigint>>, outputs map<string,array<bigint>>",
)
