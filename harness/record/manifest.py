"""The manifest of a run folder: the size and hash of each collected file, so that damage is detected.

    {"files": {"plan.json": {"bytes": 812, "xxh3": "…"}, "ledger/sent-00000.parquet": …}, "history": {"bytes": …}}

The history continues after the collection; only its part up to then is recorded. If a file differs from the manifest,
the verdict is `unknown`, whatever the tables contain.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import xxhash

from onceproof.harness.record import documents

SCHEMA_VERSION = 1
_NAME = "manifest.json"
_KINDS = (".parquet", ".json")
_CHUNK_BYTES = 1 << 20


def seal(folder: Path) -> None:
    """Write manifest.json for the present plan, ledger, tables and history of a run folder."""
    _write(
        folder,
        {
            "schema_version": SCHEMA_VERSION,
            "files": {str(path.relative_to(folder)): _look(path) for path in _files(folder)},
            "history": _look(folder / "history.jsonl"),
        },
    )


def add(folder: Path, table: Path) -> None:
    """Add a table to the manifest of a run folder; the entries of other files are not changed."""
    document = _sealed(folder)
    added = {str(path.relative_to(folder)): _look(path) for path in _files(folder) if path.is_relative_to(table)}
    _write(folder, {**document, "files": document["files"] | added})


def damage(folder: Path) -> list[str]:
    """Return one line for each missing, additional or changed file. Raises BadInput when there is no manifest."""
    sealed = _sealed(folder)
    there = {str(path.relative_to(folder)) for path in _files(folder)}
    problems = [f"{name} is missing" for name in sorted(set(sealed["files"]) - there)]
    problems += [f"{name} was not there when the run was collected" for name in sorted(there - set(sealed["files"]))]
    problems += [
        f"{name} is not what it was when the run was collected"
        for name, was in sorted(sealed["files"].items())
        if name in there and _look(folder / name) != was
    ]
    if _look(folder / "history.jsonl", sealed["history"]["bytes"]) != sealed["history"]:
        problems.append("history.jsonl is not what it was when the run was collected")
    return problems


def _sealed(folder: Path) -> dict[str, Any]:
    return documents.read(folder / _NAME, schema_version=SCHEMA_VERSION, missing="the run was not collected completely")


def _write(folder: Path, document: dict[str, Any]) -> None:
    (folder / _NAME).write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")


def _files(folder: Path) -> Iterator[Path]:
    yield folder / "plan.json"
    for name in ("ledger", "tables"):
        yield from sorted(path for path in (folder / name).rglob("*") if path.is_file() and path.suffix in _KINDS)


def _look(path: Path, limit: int | None = None) -> dict[str, Any]:
    """Return the size and hash of a file, or of its first `limit` bytes."""
    summed, left = xxhash.xxh3_128(), path.stat().st_size if limit is None else limit
    read = 0
    with path.open("rb") as file:
        while left > read and (chunk := file.read(min(_CHUNK_BYTES, left - read))):
            summed.update(chunk)
            read += len(chunk)
    return {"bytes": read, "xxh3": summed.hexdigest()}
