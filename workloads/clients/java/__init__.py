"""The driver for Apache Kafka's Java client, of any version, which runs in the worker's process through JPype."""

import jpype

from onceproof.workloads.clients.java.reader import Reader
from onceproof.workloads.clients.java.writer import Writer

__all__ = ["Reader", "Writer", "library"]


def library() -> str:
    """Return `Java` and the version that the client reports, such as `Java 4.3.1`."""
    return f"Java {jpype.JClass('org.apache.kafka.common.utils.AppInfoParser').getVersion()}"
