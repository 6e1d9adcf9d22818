"""The driver for Apache's own Java client, of any version, in the worker's process by JPype."""

from workloads.clients.java.reader import Reader
from workloads.clients.java.writer import Writer

__all__ = ["Reader", "Writer"]
