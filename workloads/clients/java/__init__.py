"""The driver for Apache's own Java client, of any version, in the worker's process by JPype."""

import jpype

from onceproof.workloads.clients.java.reader import Reader
from onceproof.workloads.clients.java.writer import Writer

__all__ = ["Reader", "Writer", "library"]


def library() -> str:
    return f"Java {jpype.JClass('org.apache.kafka.common.utils.AppInfoParser').getVersion()}"
