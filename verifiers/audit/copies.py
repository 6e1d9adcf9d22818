"""Read what an audit judges: copies of brokers' log directories, or the tables that a run's logs were read into.

    of_directories([path, …], start)     directories with a meta.properties each, or folders that contain such ones
    of_run(folder, start)                tables/batches.parquet and tables/states.parquet of a run, and nothing else

A partition has one log for each broker that holds a replica. Batches are read by Spark's tasks, so the executors must
see the directories at the same paths. `start` starts Spark, once it is known that there is something to read.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from onceproof.harness.base import coordinators, files
from onceproof.harness.base.errors import BadInput
from onceproof.harness.record import documents
from onceproof.harness.record.tables import BATCHES, SCHEMA_VERSION, STATES
from onceproof.verifiers.audit.noted import Noted, Notes, Place
from onceproof.verifiers.collect import segments, states
from onceproof.verifiers.collect.segments import Replica
from onceproof.verifiers.evidence import decisions

_BATCH_BYTES = 1_000  # there may be as many batches as the logs have of these, rarely more
_DEPTH = 4  # folders between a path and a log directory in it
_META = "meta.properties"
_STATES = "__transaction_state"
_PARTITION = re.compile(r"([a-zA-Z0-9._-]{1,249})-([0-9]{1,10})")  # Kafka accepts no other names of topics
_PARTITION_MAX = (1 << 31) - 1


@dataclass(kw_only=True)
class Copies:
    """What was read: the batches of all replicas (the columns of that table), and the rows of the table `states`.

    `ends` has a row for each segment with bytes behind its last complete batch (`segments.read_with_ends`), and `size`
    is the number of bytes of the files with the batches. `noted` has what each broker notes of each replica, which may
    have no batch, and `coordinators` the folders of the replicas of __transaction_state, whose states `read_states`
    reads. `stopped` says that no broker ran while any of them was copied, so that nothing is missing at the end of a
    log. `damaged` are lines about what could not be read. `partial` says that states of transactional ids may be
    missing. `own` says that only the states of one run's transactional ids were read, so that other producers'
    transactions in the internal topics are not judged.
    """

    batches: DataFrame
    size: int
    ends: DataFrame | None = None
    noted: Mapping[tuple[Place, str], Noted] = field(default_factory=dict)
    coordinators: Mapping[Place, Mapping[str, Path]] = field(default_factory=dict)
    states: list[dict[str, Any]] = field(default_factory=list)
    stopped: bool = False
    partial: bool = False
    own: bool = False
    damaged: list[str] = field(default_factory=list)


class Start(Protocol):
    """What starts Spark, as `spark.session` does."""

    def __call__(self, *, records: int) -> SparkSession:
        """Return the session, to read so many records or headers of batches."""


def of_run(folder: Path, start: Start) -> Copies:
    """Read the tables of a run's folder. Raises BadInput when they are missing or damaged."""
    batches, known = (folder / "tables" / f"{name}.parquet" for name in ("batches", "states"))
    for path in (batches, known):
        if not path.exists():
            raise BadInput(f"{path}: no such file; `onceproof run` writes it when it reads the logs")
    STATES.check([known])
    footers = BATCHES.check([batches])
    count = sum(footer.num_rows for footer in footers.values())
    _check_rows(folder, count)
    frame = start(records=count).read.schema(BATCHES.spark).parquet(str(batches.absolute()))
    size = sum(path.stat().st_size for path in footers)
    return Copies(batches=frame, size=size, states=list(decisions.rows(known)), stopped=True, own=True)


def _check_rows(folder: Path, found: int) -> None:
    """Raise BadInput when the run's facts, if they are there, say another number of batches."""
    facts = folder / "tables" / "collect.json"
    if not facts.exists():
        return
    told = documents.read(facts, schema_version=SCHEMA_VERSION, missing="").get("rows", {}).get("batches", found)
    if told != found:
        raise BadInput(f"{folder / 'tables' / 'batches.parquet'}: {found} rows; expected {told}, as collect.json says")


def of_directories(paths: Sequence[Path], start: Start, *, stopped: bool) -> Copies:
    """Read copied log directories of one cluster.

    `stopped` says that no broker ran while any of them was copied. A clean shutdown that a broker has noted does not
    show that, since brokers are often stopped and copied one after the other. Raises BadInput when a path holds no log
    directory or cannot be read, or when the directories are of several clusters.
    """
    try:
        directories = [each for path in paths for each in _directories(path)]
        _one_cluster(directories)
        held, noted, size = _replicas(directories)
    except OSError as error:
        raise BadInput(f"{error.filename}: cannot be read: {error.strerror}") from None
    batches = segments.read_with_ends(start(records=size // _BATCH_BYTES), held.values()).persist()
    folders: dict[Place, dict[str, Path]] = defaultdict(dict)
    for (place, broker), replica in held.items():
        if place[0] == _STATES:
            folders[place][broker] = replica.folder
    return Copies(
        batches=batches.where("rest IS NULL").select(*BATCHES.columns),
        size=size,
        ends=batches.where("rest IS NOT NULL"),
        noted=noted,
        coordinators=folders,
        stopped=stopped,
    )


def _replicas(
    directories: Sequence[Path],
) -> tuple[dict[tuple[Place, str], Replica], dict[tuple[Place, str], Noted], int]:
    """Return the replicas in log directories, what is noted of them there, and the bytes of segments."""
    held: dict[tuple[Place, str], Replica] = {}
    noted: dict[tuple[Place, str], Noted] = {}
    size = 0
    for directory in directories:
        broker = f"broker {_meta(directory).get('node.id') or _meta(directory).get('broker.id', '?')}"
        notes = Notes(directory)
        for folder in sorted(path for path in directory.iterdir() if path.is_dir()):
            place = _place(folder)
            if place is None:
                continue
            if (place, broker) in held:
                raise BadInput(f"{folder}: {broker} has this partition twice")
            size += sum(files.regular(segment) for segment in folder.glob("*.log"))
            held[place, broker] = Replica(topic=place[0], partition=place[1], broker=broker, folder=folder)
            noted[place, broker] = notes.of(place, folder)
    return held, noted, size


def _directories(path: Path) -> list[Path]:
    """Return the log directories at or below a path."""
    if not path.is_dir():
        raise BadInput(f"{path}: no such directory; expected a broker's log directory, which has a {_META}")
    level, found = [path], list[Path]()
    for _ in range(_DEPTH):
        found += [each for each in level if (each / _META).is_file()]
        others = [each for each in level if not (each / _META).is_file()]
        level = [child for each in others for child in each.iterdir() if child.is_dir()]
    if found:
        return sorted(found)
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


def _place(folder: Path) -> Place | None:
    """Return the partition that a folder is of; None if it is no partition's (`-delete`, `-future`, `-stray`)."""
    named = _PARTITION.fullmatch(folder.name)
    return (named[1], int(named[2])) if named and int(named[2]) <= _PARTITION_MAX else None


def read_states(found: Copies, preferred: Callable[[Place], Sequence[str]]) -> None:
    """Add the states of each coordinator's log, from the first intact replica in the order of `preferred`.

    `preferred` returns the brokers that hold a replica of a partition.
    """
    if found.own:
        return  # the run's table has them
    places = sorted(found.coordinators)
    found.partial = [number for _, number in places] != list(range(len(places))) or not places
    for place in places:
        for broker in preferred(place):
            try:
                found.states += list(states.read(found.coordinators[place][broker], place[1]))
            except ValueError as error:
                found.damaged.append(str(error))
                found.partial = True
                continue
            break
    # If the last partitions are in no copy, their number is not known, and ids are in others than it would follow.
    numbers = {each["transactional_id"]: each["log"] for each in found.states}
    found.partial |= any(coordinators.partition(name, len(places)) != number for name, number in numbers.items())
