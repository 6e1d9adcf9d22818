"""The driver for librdkafka, through confluent-kafka."""

import importlib.metadata

import confluent_kafka

from onceproof.workloads.clients.librdkafka.reader import Reader
from onceproof.workloads.clients.librdkafka.writer import Writer

__all__ = ["Reader", "Writer", "library"]


def library() -> str:
    """Return the versions of confluent-kafka and of librdkafka, as these report them."""
    binding = importlib.metadata.version("confluent-kafka")
    return f"confluent-kafka {binding} with librdkafka {confluent_kafka.libversion()[0]}"
