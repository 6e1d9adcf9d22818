"""The driver for librdkafka, through confluent-kafka: a reader and writers."""

import confluent_kafka

from workloads.clients.librdkafka.reader import Reader
from workloads.clients.librdkafka.writer import Writer

__all__ = ["Reader", "Writer", "library"]


def library() -> str:
    return f"confluent-kafka {confluent_kafka.version()[0]} with librdkafka {confluent_kafka.libversion()[0]}"
