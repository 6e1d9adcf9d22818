"""Read batch headers from the log segments, by Spark's tasks; a consumer does not show them.

There is one row for each batch of every replica: producer id and epoch, base sequence, whether the batch is
transactional, and for a control batch its type (commit or abort) and its coordinator epoch. Only the header of a batch
is read, and the one record of a control batch (`java/onceproof/Segment.java`).

    topic  partition  broker  first  last  records  producer_id  producer_epoch  sequence  transactional  control
    crc  coordinator_epoch  marker  intact  fate

`control` is "commit", "abort" or null; a producer_id of −1 means that the producer is not idempotent. The next marker
of its producer in its partition decides what became of a transactional batch: `marker` is its offset, and `fate` is
visible, aborted, control, or open if no marker follows. The batches of one producer with the same marker are a span.

`intact` says whether the bytes of the batch have the CRC that its header names; it is null if they were not read.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from onceproof.harness.base.errors import BadInput
from onceproof.harness.record.tables import BATCHES

_TASK_BYTES = 64 << 20  # a small run has one task then


@dataclass(frozen=True, kw_only=True)
class Replica:
    """A replica of a partition: the broker that has it, and the folder with its segments, as executors see it.

    The CRCs of its batches are checked if `crcs` is true.
    """

    topic: str
    partition: int
    broker: str
    folder: Path
    crcs: bool = True


def read(spark: SparkSession, replicas: Iterable[Replica]) -> DataFrame:
    """Return the batches of these replicas, with the columns of the table `batches`.

    A segment ends at the first batch that is not complete, or that has another message format than 2. Raises BadInput
    for a folder with a tab or a line break in its path.
    """
    return _scan(spark, replicas).select(*BATCHES.columns)


def read_with_ends(spark: SparkSession, replicas: Iterable[Replica]) -> DataFrame:
    """Return the batches of these replicas, as `read` does, with the columns `segment` and `rest`, which are null.

    In addition, there is a row for each segment that ends in bytes that are no complete batch: topic, partition,
    broker, the path of the segment, and the number of these bytes. All other columns are null.
    """
    return _scan(spark, replicas, ends="true")


def _line(replica: Replica) -> str:
    told = (replica.topic, replica.partition, replica.broker, int(replica.crcs), replica.folder.resolve())
    line = "\t".join(map(str, told))
    if line.count("\t") >= len(told) or len(line.splitlines()) > 1:
        raise BadInput(f"{replica.folder}: allowed: a path without tabs and line breaks")
    return line


def _scan(spark: SparkSession, replicas: Iterable[Replica], **options: str) -> DataFrame:
    lines = list(map(_line, replicas))
    told = {"replicas": "\n".join(lines), "task_bytes": str(_TASK_BYTES), **options}
    return spark.read.format("onceproof.SegmentSource").options(**told).load()
