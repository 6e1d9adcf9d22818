"""Ask a cluster which partitions have records that a read_committed consumer would still receive.

A log's end does not say so: transaction markers and aborted records have offsets, and no consumer receives them. So a
consumer reads on from the offset in question, until it receives a record or reaches the end:

    output of the first service: … 41  commit  commit  abort          committed offset 42, end 45: nothing remains
    output of the first service: … 41  commit  42  commit             committed offset 42, end 45: a record remains
"""

from collections.abc import Mapping
from time import monotonic

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from onceproof.harness.base.errors import DeadlineError
from onceproof.harness.cluster.described import Partition

_POLL_S = 0.2


def remaining(
    bootstrap: str, ranges: Mapping[Partition, tuple[int, int]], *, deadline_s: float = 10.0
) -> set[Partition]:
    """Return the partitions with a record, or an undecided transaction, in a range of offsets (first, end).

    Raises DeadlineError when the cluster does not answer for all of them within `deadline_s` seconds, and
    KafkaException when it refuses.
    """
    found, asked = set(), dict(ranges)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "onceproof-remaining",  # never joined: the partitions are assigned
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 50,
            "max.partition.fetch.bytes": 1_000,  # one record is enough
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, first) for (topic, partition), (first, _) in asked.items()])
        deadline = monotonic() + deadline_s
        while asked:
            message = consumer.poll(_POLL_S)
            if message is None:
                if monotonic() > deadline:
                    raise DeadlineError(f"waited {deadline_s:g} s for a record or the end of {sorted(asked)}")
                continue
            error = message.error()
            place = str(message.topic()), int(message.partition() or 0)
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            if place in asked:
                _, end = asked.pop(place)
                if int(message.offset() or 0) < end:  # a record; or the end for this consumer, the LSO
                    found.add(place)
    finally:
        consumer.close()
    return found
