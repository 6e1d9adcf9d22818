"""Read the records of Kafka's internal topics with Kafka's own record classes, from copies of their segments.

    records(folder, "transactions")      the records of a replica of one partition of __transaction_state
    records(folder, "offsets")           the committed offsets in a replica of one partition of __consumer_offsets

A record is {"offset": …, "key": {…}, "value": {…} or None}: key and value have the names of Kafka's message schemas
(TransactionLogValue, OffsetCommitValue), and None is a tombstone. It also has what its batch says of its producer:
"producerId", "producerEpoch" and "transactional". Between the committed offsets there are the markers of their
transactions: {"offset": …, "producerId": …, "commit": …}.

Any compression is read, and the CRC of each batch is checked.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

import jpype

from onceproof.harness.artifacts import jars
from onceproof.harness.artifacts.clients import DEFAULT_JAVA
from onceproof.harness.cluster.admin import start_jvm

_SOURCES = Path(__file__).with_name("java") / "log" / "onceproof"
_lock = threading.Lock()


def jar() -> Path:
    """Return the jar of the reader. Raises HarnessError when it does not compile."""
    return jars.compiled(
        "internal-log", sorted(_SOURCES.glob("*.java")), sorted(jars.kafka(DEFAULT_JAVA).glob("*.jar"))
    )


@cache
def _reader() -> Any:
    start_jvm()
    jpype.addClassPath(str(jar()))
    return jpype.JClass("onceproof.InternalLog")


def records(folder: Path, kind: Literal["offsets", "transactions"]) -> Iterator[dict[str, Any]]:
    """Yield the records of a replica, over all of its segments, of which a part is in memory at a time.

    Raises ValueError, with the segment and the reason, when a batch is damaged or a record has an unknown layout.
    """
    for segment in sorted(folder.glob("*.log")):
        with _read(segment) as reader, closing(getattr(reader, kind)(str(segment))) as lines:
            while some := str(lines.next()):
                yield from map(json.loads, some.rstrip("\n").split("\n"))


def compacted(folder: Path) -> int:
    """Return the number of offsets below the end of a replica that no longer have a record.

    Raises ValueError, with the segment and the reason, when a batch is damaged.
    """
    end = held = 0
    for segment in sorted(folder.glob("*.log")):
        with _read(segment) as reader:
            following, records = reader.held(str(segment))
        end, held = max(end, int(following)), held + int(records)
    return end - held


@contextmanager
def _read(segment: Path) -> Iterator[Any]:
    """Yield the reader. Raises ValueError, with the segment and the reason, when it throws an exception."""
    with _lock:
        reader = _reader()
    try:
        yield reader
    except jpype.JException as error:
        raise ValueError(f"{segment}: {error.message()}") from None
