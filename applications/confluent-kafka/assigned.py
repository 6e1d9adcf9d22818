"""A copy without a group: each instance has partitions by its number, and finds its place in what it has written.

An output has its input's offset in a header, so the output topic says where to go on, and a transaction has nothing but
outputs. init_transactions fences an earlier process of this instance before the place is looked for. BROKEN=no-place
takes the end of the input instead.
"""

import os
import signal
import sys
from types import FrameType

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

BROKEN = os.environ.get("BROKEN", "")
SOURCE, TARGET = os.environ["SOURCE"], os.environ["TARGET"]
INSTANCE, INSTANCES = int(os.environ["INSTANCE"]), int(os.environ["INSTANCES"])
COMMON = {"bootstrap.servers": os.environ["BOOTSTRAP"]}
READER = {**COMMON, "group.id": f"{TARGET}-nobody", "enable.auto.commit": False, "isolation.level": "read_committed"}
stopping = False


def stop(_signal: int, _frame: FrameType | None) -> None:
    global stopping
    stopping = True


def next_offsets(partitions: list[int]) -> dict[int, int]:
    """The offset behind the last input that has an output, for each partition."""
    offsets = dict.fromkeys(partitions, 0)
    reader = Consumer({**READER, "enable.partition.eof": True})
    reader.assign([TopicPartition(TARGET, partition, 0) for partition in partitions])
    left = set(partitions)
    while left:
        for each in reader.consume(1000, 1):
            if (error := each.error()) is None:
                offsets[each.partition()] = int(dict(each.headers())["offset"]) + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(each.partition())
    reader.close()
    return offsets


def main() -> None:
    signal.signal(signal.SIGTERM, stop)
    producer = Producer({**COMMON, "transactional.id": os.environ["TRANSACTIONAL_ID"], "transaction.timeout.ms": 6000})
    producer.init_transactions(30)
    consumer = Consumer(READER)
    count = len(consumer.list_topics(SOURCE, 30).topics[SOURCE].partitions)
    places = next_offsets([partition for partition in range(count) if partition % INSTANCES == INSTANCE])
    if BROKEN == "no-place" and any(places.values()):
        places = {each: consumer.get_watermark_offsets(TopicPartition(SOURCE, each), 10)[1] for each in places}
    consumer.assign([TopicPartition(SOURCE, partition, offset) for partition, offset in places.items()])
    sys.stdout.write("copying\n")
    sys.stdout.flush()
    while not stopping:
        records = [each for each in consumer.consume(200, 0.3) if each.error() is None]
        if not records:
            continue
        producer.begin_transaction()
        try:
            for each in records:
                headers = {"offset": str(each.offset())}
                producer.produce(TARGET, each.value(), each.key(), each.partition(), headers=headers)
            producer.commit_transaction(30)
        except KafkaException as error:
            sys.exit(f"the transaction failed: {error}")  # the next process finds the place again
    consumer.close()


if __name__ == "__main__":
    main()
