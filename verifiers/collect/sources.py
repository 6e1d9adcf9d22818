"""The jars of onceproof's Spark data sources (`java/onceproof`), which are compiled when they are first needed."""

from pathlib import Path

from onceproof.harness.artifacts import jars as fetched
from onceproof.harness.artifacts.clients import DEFAULT_JAVA

_SOURCES = Path(__file__).with_name("java") / "onceproof"


def jars() -> list[Path]:
    """Return the jars that Spark needs to read topics and segments: the data sources, and Kafka's client.

    Raises HarnessError when Maven Central does not answer or the data sources do not compile.
    """
    [client] = fetched.kafka(DEFAULT_JAVA).glob("kafka-clients-*.jar")
    sources = sorted(_SOURCES.glob("*.java"))
    return [fetched.compiled("sources", sources, [*fetched.of_pyspark(), client]), client]
