"""The manifest of a run folder: size and hash of each collected file and of the results, so that damage is detected.

    {"files": {"plan.json": {"bytes": 812, "xxh3": "…"}, "ledger/sent-00000.parquet": …}, "history": {"bytes": …},
     "judged": {"results.json": …, "plan.json": …, "history.jsonl": …}}

`files` and `history` are sealed when the run is collected. If a file differs from them, the verdict is `unknown`,
whatever the tables contain. `judged` is sealed with each verdict: what a report shows. If a file differs from it, the
report is refused. The history continues after it is sealed; only its part up to then is recorded. The hashes detect
damage and careless edits. They are no signature: who receives a folder should judge it again.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import xxhash
from pydantic import ConfigDict, TypeAdapter

from onceproof.harness.base import files
from onceproof.harness.base.errors import BadInput
from onceproof.harness.record import documents

SCHEMA_VERSION = 2
_NAME, _HISTORY = "manifest.json", "history.jsonl"
_DOCUMENTS = ("plan.json", "workload.json")
_JUDGED = ("results.json", *_DOCUMENTS, _HISTORY)
_FOLDERS = ("ledger", "tables")
_KINDS = (".parquet", ".json")
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class _Seal:
    """The size and hash of a file, or of its beginning."""

    __pydantic_config__ = ConfigDict(extra="forbid")
    bytes: int
    xxh3: str


@dataclass(frozen=True, kw_only=True)
class _Manifest:
    """The content of manifest.json. `history` is None if the run was not collected completely."""

    __pydantic_config__ = ConfigDict(extra="forbid")
    files: Mapping[str, _Seal] = field(default_factory=dict)
    history: _Seal | None
    judged: Mapping[str, _Seal] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION


_MANIFEST = TypeAdapter(_Manifest)


def seal(folder: Path) -> None:
    """Write manifest.json for the present plan, workload, ledger, tables and history of a run folder."""
    _write(folder, _Manifest(files=_look_at(folder, _files(folder)), history=_look(folder / _HISTORY)))


def add(folder: Path, table: Path) -> None:
    """Add a table to the manifest of a run folder; the entries of other files are not changed."""
    sealed = _collected(folder)
    added = _look_at(folder, (path for path in _files(folder) if path.is_relative_to(table)))
    _write(folder, replace(sealed, files={**sealed.files, **added}))


def seal_results(folder: Path) -> None:
    """Add what a verdict is shown from to the manifest of a run folder: results, plan, workload and history.

    A run that ended before it was collected gets a manifest without files.
    """
    try:
        sealed = _read(folder)
    except BadInput:  # there is none, or the disk was full when it was written
        sealed = _Manifest(history=None)
    paths = (folder / name for name in _JUDGED)
    _write(folder, replace(sealed, judged=_look_at(folder, (path for path in paths if path.exists()))))


def damage(folder: Path) -> list[str]:
    """Return one line for each collected file that is missing, additional or changed.

    Raises BadInput when there is no manifest, when it is damaged, and when the run was not collected completely.
    """
    sealed = _collected(folder)
    there = {str(path.relative_to(folder)) for path in _files(folder)}
    problems = [f"{name} is missing" for name in sorted(set(sealed.files) - there)]
    problems += [f"{name} is neither a file nor a folder" for name in sorted(_others(folder))]
    problems += [f"{name} was not there when the run was collected" for name in sorted(there - set(sealed.files))]
    problems += [
        f"{name} is not what it was when the run was collected"
        for name, was in sorted(sealed.files.items())
        if name in there and _look(folder / name) != was
    ]
    if sealed.history and _look(folder / _HISTORY, sealed.history.bytes) != sealed.history:
        problems.append(f"{_HISTORY} is not what it was when the run was collected")
    return problems


def check_results(folder: Path) -> None:
    """Raise BadInput when the results, or another file that a report shows, are not those of the last verdict."""
    judged = _read(folder).judged
    if _JUDGED[0] not in judged:
        raise BadInput(f"{folder / _NAME}: judged.{_JUDGED[0]}: missing; `onceproof verify {folder}` judges the run")
    for name in (name for name in _JUDGED if name in judged or (folder / name).exists()):
        was, path = judged.get(name), folder / name
        limit = was.bytes if was and name == _HISTORY else None
        if not path.exists() or _look(path, limit) != was:
            raise BadInput(
                f"{path}: not what it was when the run was judged; `onceproof verify {folder}` judges the run again"
            )


def _collected(folder: Path) -> _Manifest:
    sealed = _read(folder)
    if sealed.history is None:
        raise BadInput(f"{folder / _NAME}: history: missing, because the run was not collected completely")
    return sealed


def _read(folder: Path) -> _Manifest:
    path = folder / _NAME
    raw = documents.read(path, schema_version=SCHEMA_VERSION, missing="the run was not collected completely")
    return documents.parse(path, raw, _MANIFEST)


def _write(folder: Path, sealed: _Manifest) -> None:
    files.write(folder / _NAME, json.dumps(asdict(sealed), indent=1, sort_keys=True) + "\n")


def _files(folder: Path) -> Iterator[Path]:
    yield from (path for name in _DOCUMENTS if (path := folder / name).exists())
    for name in _FOLDERS:
        every = name == "tables"  # Spark reads all files of a table, whatever their suffix is
        found = (path for path in (folder / name).rglob("*") if path.is_file())
        yield from sorted(path for path in found if path.suffix in _KINDS or (every and path.name[0] not in "_."))


def _others(folder: Path) -> Iterator[str]:
    """Yield what is no file and no folder among the tables: reading a pipe, for example, might never end."""
    for path in (each for name in _FOLDERS for each in (folder / name).rglob("*")):
        if not path.is_file() and not path.is_dir():
            yield str(path.relative_to(folder))


def _look_at(folder: Path, paths: Iterable[Path]) -> dict[str, _Seal]:
    return {str(path.relative_to(folder)): _look(path) for path in paths}


def _look(path: Path, limit: int | None = None) -> _Seal:
    """Return the size and hash of a file, or of its first `limit` bytes. Raises BadInput when it cannot be read."""
    summed, read = xxhash.xxh3_128(), 0
    try:
        size = files.regular(path)
        left = size if limit is None else limit
        with path.open("rb") as file:
            while left > read and (chunk := file.read(min(_CHUNK_BYTES, left - read))):
                summed.update(chunk)
                read += len(chunk)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    return _Seal(read, summed.hexdigest())
