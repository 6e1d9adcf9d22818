"""Topics as Spark's frames, by our own source: `java/onceproof`, compiled when it is first needed.

    read(spark, bootstrap, "orders", pinned, "read_committed")     partition offset key value number digest …

Spark's own Kafka source makes each column of a record and all of its headers whatever is asked for, and asks a broker
for the partition's first and last offset after each poll: it took 1.5 to 2.2 times as long as Kafka's tool to read
small records into nothing, where ours takes about as long as that (docs/bench.md).
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from onceproof.harness.artifacts import jars as fetched
from onceproof.harness.artifacts.clients import DEFAULT_JAVA
from onceproof.harness.cluster.admin import Isolation
from onceproof.harness.record import provenance
from onceproof.harness.record.payload import NUMBER_DIGITS
from onceproof.harness.record.provenance import HEADER

_SOURCES = Path(__file__).with_name("java") / "onceproof"
# More bytes at once outlive the young generation, and are copied about. A fetch at a partition's end waits for new
# records, and closing waits for it: half a second, by default. The system sizes the receive buffer itself: a fixed one
# of 2 MiB took a tenth to a third longer for records of a kilobyte.
_SETTINGS = {
    "max.partition.fetch.bytes": str(8 << 20),
    "fetch.max.bytes": str(32 << 20),
    "fetch.max.wait.ms": "10",
    "max.poll.records": "5000",
    "receive.buffer.bytes": "-1",
}


def jars() -> list[Path]:
    """What Spark needs to read topics: the source, and Kafka's client.

    Raises HarnessError when Maven Central does not answer, or the source does not compile.
    """
    [client] = fetched.kafka(DEFAULT_JAVA).glob("kafka-clients-*.jar")
    sources = sorted(_SOURCES.glob("*.java"))
    return [fetched.compiled("topic-source", sources, [*fetched.of_pyspark(), client]), client]


def read(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    pinned: Iterable[Mapping[str, Any]],
    isolation: Isolation,
    *,
    intermediate: bool = False,
    deadline_s: int = 60,
) -> DataFrame:
    """The records of a topic from each partition's `start` on, before its `end`, as the entries of `pinned` name them:
    partition, offset, key, value, number (of the input, as the value says), digest (`payload`, of key and value), and
    told_0 to told_2, the provenance header as integers (with `intermediate`, of its longer form), which are null when
    there is no such header or more than one. Markers have no row; aborted records have none under read_committed.

    A query over it fails when a range does not start in the log any more, or when nothing comes for `deadline_s` before
    its end is reached.
    """
    ranges = (f"{each['partition']}:{each['start']}:{each['end']}" for each in pinned if each["topic"] == topic)
    options = {
        "topic": topic,
        "ranges": ",".join(ranges),
        "deadline_s": str(deadline_s),
        "number": str(NUMBER_DIGITS),
        "header": HEADER,
        "widths": ",".join(map(str, provenance.widths(intermediate=intermediate))),
    }
    settings = {**_SETTINGS, "bootstrap.servers": bootstrap, "isolation.level": isolation}
    named = {f"kafka.{name}": value for name, value in settings.items()}
    return spark.read.format("onceproof.TopicSource").options(**options, **named).load()
