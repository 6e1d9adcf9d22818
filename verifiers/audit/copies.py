"""Read what an audit judges: copies of brokers' log directories, or the tables that a run's logs were read into.

    of_directories([path, …])     directories with a meta.properties each, or folders that contain such directories
    of_run(folder)                tables/batches.parquet and tables/states.parquet of a run; nothing else of it is read

A partition has one log for each broker that holds a replica. `hw` is the high watermark that the broker noted last
(replication-offset-checkpoint), below which its log cannot change.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from onceproof.harness.base import files
from onceproof.harness.base.errors import BadInput
from onceproof.harness.record.tables import BATCHES, STATES
from onceproof.verifiers.collect import segments, states

_DEPTH = 4  # folders between a path and a log directory in it
_META, _CHECKPOINT, _CLEAN = "meta.properties", "replication-offset-checkpoint", ".kafka_cleanshutdown"
_COLUMNS = tuple(name for name in BATCHES.columns if name not in ("topic", "partition", "broker"))
_STATES = "__transaction_state"
Place = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A batch of a replica; the fields are those of the table `batches`."""

    first: int
    last: int
    records: int
    producer_id: int
    producer_epoch: int
    sequence: int
    transactional: bool
    control: str | None
    crc: int
    coordinator_epoch: int | None
    marker: int | None
    intact: bool | None
    fate: str


@dataclass(kw_only=True)
class Copies:
    """What was read: each partition's logs by broker, and the rows of the table `states`.

    `hw` has the high watermark of each broker's replica where it is known. `stopped` says that the brokers did not run
    when they were copied, so that nothing is missing at the end of a log. `damaged` are lines about what could not be
    read. `partial` says that states of transactional ids may be missing. `own` says that only the states of one run's
    transactional ids were read, so that other producers' transactions in the internal topics are not judged.
    """

    logs: dict[Place, dict[str, list[Batch]]] = field(default_factory=lambda: defaultdict(dict))
    hw: dict[tuple[Place, str], int] = field(default_factory=dict)
    states: list[dict[str, Any]] = field(default_factory=list)
    stopped: bool = False
    partial: bool = False
    own: bool = False
    damaged: list[str] = field(default_factory=list)


def of_run(folder: Path) -> Copies:
    """Read the tables of a run's folder. Raises BadInput when they are missing or damaged."""
    batches, known = (folder / "tables" / f"{name}.parquet" for name in ("batches", "states"))
    for table, path in ((BATCHES, batches), (STATES, known)):
        if not path.exists():
            raise BadInput(f"{path}: no such file; `onceproof run` writes it when it reads the logs")
        table.check([path])
    found = Copies(states=pq.read_table(known).to_pylist(), stopped=True, own=True)
    for row in pq.read_table(batches).to_pylist():
        place = row["topic"], row["partition"]
        batch = Batch(**{name: row[name] for name in _COLUMNS})
        found.logs[place].setdefault(row["broker"], []).append(batch)
    for logs in found.logs.values():
        for log in logs.values():
            log.sort(key=lambda each: each.first)
    return found


def of_directories(paths: Sequence[Path], *, stopped: bool) -> Copies:
    """Read copied log directories of one cluster.

    `stopped` says that the brokers did not run then; a directory in which a broker noted a clean shutdown shows it as
    well. Raises BadInput when a path holds no log directory or cannot be read, or when the directories are of several
    clusters.
    """
    try:
        return _of_directories(paths, stopped)
    except OSError as error:
        raise BadInput(f"{error.filename}: cannot be read: {error.strerror}") from None


def _of_directories(paths: Sequence[Path], stopped: bool) -> Copies:
    directories = [each for path in paths for each in _directories(path)]
    _one_cluster(directories)
    found = Copies(stopped=stopped or all((each / _CLEAN).exists() for each in directories))
    for directory in directories:
        broker = f"broker {_meta(directory).get('node.id') or _meta(directory).get('broker.id', '?')}"
        marks = _checkpoint(directory / _CHECKPOINT)
        for folder in sorted(path for path in directory.iterdir() if path.is_dir()):
            place = _place(folder)
            if place is None:
                continue
            if broker in found.logs[place]:
                raise BadInput(f"{folder}: {broker} has this partition twice")
            found.logs[place][broker] = _replica(folder, found.damaged)
            if place in marks:
                found.hw[place, broker] = marks[place]
    _read_states(found, directories)
    return found


def _directories(path: Path) -> list[Path]:
    """Return the log directories at or below a path."""
    if not path.is_dir():
        raise BadInput(f"{path}: no such directory; expected a broker's log directory, which has a {_META}")
    level = [path]
    for _ in range(_DEPTH):
        found = [each for each in level if (each / _META).is_file()]
        if found:
            return sorted(found)
        level = [child for each in level for child in each.iterdir() if child.is_dir()]
    raise BadInput(f"{path}: no broker's log directory at or below it: no {_META}")


def _meta(directory: Path) -> dict[str, str]:
    lines = (directory / _META).read_text(errors="replace").splitlines()
    pairs = (line.partition("=") for line in lines if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in pairs}


def _one_cluster(directories: Iterable[Path]) -> None:
    clusters = {_meta(each).get("cluster.id", ""): each for each in directories}
    if len(clusters) > 1:
        named = ", ".join(f"{path} of {cluster or 'an unnamed cluster'}" for cluster, path in sorted(clusters.items()))
        raise BadInput(f"log directories of several clusters: {named}; allowed: those of one cluster")


def _checkpoint(path: Path) -> dict[Place, int]:
    """Return the high watermarks in a checkpoint file: version, number of entries, and topic, partition, offset."""
    if not path.is_file():
        return {}
    entries = (line.rsplit(" ", 2) for line in path.read_text(errors="replace").splitlines()[2:])
    return {(e[0], int(e[1])): int(e[2]) for e in entries if len(e) == 3 and e[1].isdigit() and e[2].isdigit()}


def _place(folder: Path) -> Place | None:
    """Return the partition that a folder is of; None if it is no partition's (`-delete`, `-future`, `-stray`)."""
    topic, _, number = folder.name.rpartition("-")
    return (topic, int(number)) if topic and number.isdigit() else None


def _replica(folder: Path, damaged: list[str]) -> list[Batch]:
    names = _COLUMNS
    for segment in sorted(folder.glob("*.log")):
        size = files.regular(segment)
        left = segments.remainder(segment)
        if left:
            damaged.append(f"{segment}: the last {left} of {size} bytes are no complete batch")
    return [Batch(**dict(zip(names, row, strict=True))) for row in segments.replica(folder)]


def _read_states(found: Copies, directories: Sequence[Path]) -> None:
    """Read the states from the longest replica of each coordinator's log."""
    places = sorted(place for place in found.logs if place[0] == _STATES)
    found.partial = [number for _, number in places] != list(range(len(places))) or not places
    for topic, number in places:
        for folder in sorted(_folders(directories, f"{topic}-{number}"), key=_bytes, reverse=True):
            try:
                found.states += states.read(folder, number)
            except ValueError as error:
                found.damaged.append(str(error))
                found.partial = True
                continue
            break


def _folders(directories: Iterable[Path], name: str) -> Iterator[Path]:
    return (each / name for each in directories if (each / name).is_dir())


def _bytes(folder: Path) -> int:
    return sum(segment.stat().st_size for segment in folder.glob("*.log"))
