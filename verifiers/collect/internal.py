"""Read the records of Kafka's internal topics with Kafka's own record classes, from copies of their segments.

    records(folder, "transactions")      the records of a replica of one partition of __transaction_state
    records(folder, "offsets")           the committed offsets in a replica of one partition of __consumer_offsets

A record is {"offset": …, "first": …, "key": {…}, "value": {…} or None}: `first` is the first offset of its batch, key
and value have the names of Kafka's message schemas (TransactionLogValue, OffsetCommitValue), and None is a tombstone.
Any compression is read, and the CRC of each batch is checked.
"""

import json
import threading
from collections.abc import Iterator
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
    """Yield the records of a replica, over all of its segments.

    Raises ValueError, with the segment and the reason, when a batch is damaged or a record has an unknown layout.
    """
    with _lock:
        reader = _reader()
    for segment in sorted(folder.glob("*.log")):
        try:
            lines = str(getattr(reader, kind)(str(segment)))
        except jpype.JException as error:
            raise ValueError(f"{segment}: {error.message()}") from None
        for line in lines.splitlines():
            yield json.loads(line)
