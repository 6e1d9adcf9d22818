"""A copy as a stranger would write it, with confluent-kafka. BROKEN names what is wrong with it.

offsets-apart    offsets are committed by the consumer, outside of the transaction
read-uncommitted the consumer also reads what was aborted
no-seek-back     after an abort, the consumer goes on behind the records that were not copied
garbage          each transaction has a record more, which is no copy
crashes          it ends at once
hangs            it never joins its group
"""

import faulthandler
import os
import signal
import sys
from types import FrameType

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

BROKEN = os.environ.get("BROKEN", "")
SOURCE, TARGET = os.environ["SOURCE"], os.environ["TARGET"]
HANGS_S = 40  # an instance that takes longer for a transaction ends itself, and is started again
stopping = False


def stop(_signal: int, _frame: FrameType | None) -> None:
    global stopping
    stopping = True


def rewind(consumer: Consumer) -> None:
    for each in consumer.committed(consumer.assignment(), 10):
        consumer.seek(TopicPartition(each.topic, each.partition, max(each.offset, 0)))


def main() -> None:
    signal.signal(signal.SIGTERM, stop)
    common: dict[str, str] = {"bootstrap.servers": os.environ["BOOTSTRAP"]}
    if timeout_ms := os.environ.get("SOCKET_TIMEOUT_MS"):
        common["socket.timeout.ms"] = timeout_ms
    consumer = Consumer(
        {
            **common,
            "group.id": os.environ["GROUP"],
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_uncommitted" if BROKEN == "read-uncommitted" else "read_committed",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 1000,
        }
    )
    name = os.environ["TRANSACTIONAL_ID"]
    open_ms = os.environ.get("TRANSACTION_TIMEOUT_MS", "6000")
    producer = Producer({**common, "transactional.id": name, "transaction.timeout.ms": open_ms})
    producer.init_transactions(30)
    consumer.subscribe([SOURCE])
    while not stopping:
        faulthandler.dump_traceback_later(HANGS_S, exit=True)  # send_offsets_to_transaction may (librdkafka #5456)
        records = [each for each in consumer.consume(200, 0.3) if each.error() is None]
        if not records:
            continue
        positions = [
            TopicPartition(SOURCE, p, o) for p, o in {each.partition(): each.offset() + 1 for each in records}.items()
        ]
        producer.begin_transaction()
        try:
            for each in records:
                producer.produce(TARGET, each.value(), each.key(), each.partition())
            if BROKEN == "garbage":
                producer.produce(TARGET, b"\xff\x00", None, 0)
            if BROKEN != "offsets-apart":
                producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 30)
            producer.commit_transaction(30)
            if BROKEN == "offsets-apart":
                consumer.commit(offsets=positions, asynchronous=False)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                sys.exit(f"the transaction failed: {error}")
            producer.abort_transaction(30)
            if BROKEN != "no-seek-back":
                rewind(consumer)
    consumer.close()


if __name__ == "__main__":
    if BROKEN == "crashes":
        sys.exit("this application does not start")
    if BROKEN == "hangs":
        sys.stderr.write("this application waits for something else\n")
        signal.pause()
    main()
