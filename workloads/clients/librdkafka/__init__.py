"""The driver for librdkafka, through confluent-kafka: a reader and writers."""

from workloads.clients.librdkafka.reader import Reader
from workloads.clients.librdkafka.writer import Writer

__all__ = ["Reader", "Writer"]
