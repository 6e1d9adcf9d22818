"""Reads tables/collect.json of a run folder, the facts about its tables, and refuses them when they are damaged.

`verifiers/collect/collect.py` writes the file and says what it contains. The facts stay a mapping; what is read here
only decides whether every key is there and has a value of its kind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter

from onceproof.harness.base.errors import BadInput
from onceproof.harness.record import documents
from onceproof.harness.record.results import Mode
from onceproof.harness.record.tables import SCHEMA_VERSION

_CONFIG = ConfigDict(extra="forbid")
_Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, kw_only=True)
class _Pinned:
    """A partition as it was when it was read."""

    __pydantic_config__ = _CONFIG
    topic: str
    partition: _Count
    start: _Count
    end: _Count
    high_watermark: _Count
    leader: str | None
    replicas: Sequence[str]
    isr: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class _Internal(_Pinned):
    """A partition of an internal topic, and how many of its records compaction has removed."""

    compacted: _Count


@dataclass(frozen=True, kw_only=True)
class _Position:
    """An offset that a group has committed."""

    __pydantic_config__ = _CONFIG
    topic: str
    partition: _Count
    offset: int
    metadata: str | None


@dataclass(frozen=True, kw_only=True)
class _OpenTransaction:
    """A transaction that was open when the run was at rest; `known_as` is None if no coordinator knows of it."""

    __pydantic_config__ = _CONFIG
    topic: str
    partition: _Count
    producer_id: int
    producer_epoch: int
    start_offset: int
    known_as: str | None


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """The numbers of rows of the tables. A table that the run does not have has none."""

    __pydantic_config__ = _CONFIG
    outputs: _Count
    inputs: _Count = 0
    batches: _Count = 0
    commits: _Count = 0
    states: _Count = 0
    requests: _Count = 0


@dataclass(frozen=True, kw_only=True)
class _Facts:
    """The content of collect.json.

    `open_transactions` is None if the system does not report them. `internal` is left out if its logs cannot be read.
    """

    __pydantic_config__ = _CONFIG
    schema_version: int
    mode: Mode
    partitions: Annotated[Sequence[_Pinned], Field(min_length=1)]
    positions: Sequence[_Position]
    open_transactions: Sequence[_OpenTransaction] | None
    moved: Sequence[str]
    rows: _Rows
    internal: Sequence[_Internal] = ()


_FACTS = TypeAdapter(_Facts)
_ALWAYS = ("tables/outputs.parquet", "ledger/sent-*.parquet")
_OF_LOGS = ("tables/batches.parquet", "tables/commits.parquet", "tables/states.parquet")


def read(folder: Path, *, missing: str = "the run ended before its tables were collected") -> Mapping[str, Any]:
    """Read the facts of a run folder.

    Raises BadInput with the file and the key when collect.json is damaged or of another schema version, and when a
    table is missing that belongs to these facts. `missing` completes the message when there is no collect.json.
    """
    path = folder / "tables" / "collect.json"
    raw = documents.read(path, schema_version=SCHEMA_VERSION, missing=missing)
    facts = documents.parse(path, raw, _FACTS)
    of_logs = "internal" in raw
    if not of_logs and any((folder / name).exists() for name in _OF_LOGS):
        raise BadInput(f"{path}: internal: missing, although the logs were read")
    inputs = ("tables/inputs.parquet",) if facts.mode == "full" else ()
    for name in (*_ALWAYS, *inputs, *(_OF_LOGS if of_logs else ())):
        if not any(folder.glob(name)):
            raise BadInput(f"{folder / name}: no such file, although the tables were collected")
    return raw
