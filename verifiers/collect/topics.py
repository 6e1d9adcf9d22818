"""Read topics as Spark frames through a Spark data source of our own: `java/onceproof/TopicSource.java`.

    read(spark, bootstrap, "orders", pinned, "read_committed")     partition offset key value number digest …

Unlike Spark's Kafka source, it materialises only the requested columns and headers, and it does not ask a broker for
the partition's first and last offset after each poll. To read small records and discard them, Spark's source takes 1.5
to 2.2 times as long as Kafka's own tool; this source takes about as long as that tool (docs/bench.md).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from onceproof.harness.cluster.described import Isolation
from onceproof.harness.record import provenance
from onceproof.harness.record.payload import NUMBER_DIGITS
from onceproof.harness.record.provenance import HEADER

# Larger fetches outlive the young generation and are copied by the garbage collector. A fetch at the end of a partition
# waits for new records, half a second by default, and closing the consumer waits for that fetch. The system sizes the
# receive buffer: a fixed buffer of 2 MiB took a tenth to a third longer for records of one kilobyte.
_SETTINGS = {
    "max.partition.fetch.bytes": str(8 << 20),
    "fetch.max.bytes": str(32 << 20),
    "fetch.max.wait.ms": "10",
    "max.poll.records": "5000",
    "receive.buffer.bytes": "-1",
}


def read(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    pinned: Iterable[Mapping[str, Any]],
    isolation: Isolation,
    *,
    intermediate: bool = False,
    named: str = "",
    deadline_s: int = 60,
) -> DataFrame:
    """Return the records of a topic in each partition's range, from `start` up to but not including `end`.

    `pinned` has entries with the keys topic, partition, start and end. The columns are partition, offset, key, value,
    number (of the input, as the value gives it), digest (of key and value, see `payload`), and told_0 to told_2: the
    provenance header as integers, in its longer form with `intermediate`; they are null if there is no such header or
    more than one; and `header`, the value of the last header with the name `named`. Markers have no row; under
    read_committed, aborted records have none either.

    A query over the frame fails if the log no longer holds the start of a range, or if no record arrives for
    `deadline_s` seconds before the end of the range is reached.
    """
    ranges = (f"{each['partition']}:{each['start']}:{each['end']}" for each in pinned if each["topic"] == topic)
    options = {
        "topic": topic,
        "ranges": ",".join(ranges),
        "deadline_s": str(deadline_s),
        "number": str(NUMBER_DIGITS),
        "header": HEADER,
        "named": named,
        "widths": ",".join(map(str, provenance.widths(intermediate=intermediate))),
    }
    settings = {**_SETTINGS, "bootstrap.servers": bootstrap, "isolation.level": isolation}
    options |= {f"kafka.{name}": value for name, value in settings.items()}
    return spark.read.format("onceproof.TopicSource").options(**options).load()
