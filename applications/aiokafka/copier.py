# /// script
# requires-python = ">=3.10"
# dependencies = ["aiokafka==0.14.0"]
# ///
"""A copy as a stranger would write it, with aiokafka."""

import asyncio
import os
import signal

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError, ProducerFenced

BOOTSTRAP, GROUP = os.environ["BOOTSTRAP"], os.environ["GROUP"]
SOURCE, TARGET = os.environ["SOURCE"], os.environ["TARGET"]


async def main() -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    consumer = AIOKafkaConsumer(
        SOURCE,
        bootstrap_servers=BOOTSTRAP,
        group_id=GROUP,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        session_timeout_ms=6000,
        heartbeat_interval_ms=1000,
    )
    producer = AIOKafkaProducer(
        bootstrap_servers=BOOTSTRAP, transactional_id=os.environ["TRANSACTIONAL_ID"], transaction_timeout_ms=60_000
    )
    await producer.start()
    await consumer.start()
    while not stopping.is_set():
        batches = await consumer.getmany(timeout_ms=300, max_records=200)
        if not batches:
            continue
        try:
            async with producer.transaction():
                sent = [
                    await producer.send(TARGET, each.value, each.key, tp.partition)
                    for tp, batch in batches.items()
                    for each in batch
                ]
                await asyncio.gather(*sent)
                positions = {tp: batch[-1].offset + 1 for tp, batch in batches.items()}
                await producer.send_offsets_to_transaction(positions, GROUP)
        except ProducerFenced:
            raise
        except KafkaError:
            await consumer.seek_to_committed()
    await consumer.stop()
    await producer.stop()


if __name__ == "__main__":
    asyncio.run(main())
