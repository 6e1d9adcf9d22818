"""Helpers of the Java driver: the JVM, configuration, conversions, translation of errors, and retries."""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import jpype

from onceproof.harness.artifacts import clients, jars
from onceproof.harness.artifacts.clients import DEFAULT_KAFKA
from onceproof.workloads.clients import ClientError
from onceproof.workloads.clients.settings import Settings, settled

Result = TypeVar("Result")
CALL_TIMEOUT_MS = 5000
_FATAL = {
    "PRODUCER_FENCED",
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "INVALID_PRODUCER_ID_MAPPING",
    "INVALID_TXN_STATE",
    "UNSUPPORTED_VERSION",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
}


def start_jvm(config: Mapping[str, Any]) -> None:
    """Start the process's JVM, if it is not running, with the client version of the configuration (`java==3.9.2`)."""
    if jpype.isJVMStarted():
        return
    libs = jars.kafka(clients.version(config["client"]) or DEFAULT_KAFKA)
    jpype.startJVM(
        "-Xmx192m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Xrs",
        "-Dlog4j2.level=OFF",
        "-Dlog4j2.StatusLogger.level=OFF",
        classpath=[str(libs / "*")],
        convertStrings=False,
    )


def configured(config: Mapping[str, Any], ours: Settings) -> Settings:
    """Return the complete configuration of a client; `ours` overrides the defaults given here."""
    return settled(
        config,
        {
            "metadata.max.age.ms": 5000,
            "request.timeout.ms": min(config["request_timeout_ms"], config["transaction_timeout_ms"]),
            "default.api.timeout.ms": max(config["request_timeout_ms"], CALL_TIMEOUT_MS),
            **ours,
        },
    )


def properties(settings: Mapping[str, Any]) -> Any:
    """Return the settings as java.util.Properties, each value as text."""
    result = jpype.java.util.Properties()
    for key, value in settings.items():
        result.setProperty(key, str(value).lower() if isinstance(value, bool) else str(value))
    return result


def millis(count: int) -> Any:
    """Return a number of milliseconds as java.time.Duration."""
    return jpype.java.time.Duration.ofMillis(count)


def partition_of(topic: str, partition: int) -> Any:
    """Return a TopicPartition."""
    return jpype.JClass("org.apache.kafka.common.TopicPartition")(topic, partition)


def positions(topic: str, ranges: Mapping[int, tuple[int, int]], metadata: str) -> Any:
    """Return the offsets that follow these ranges, with their metadata, as a map for a commit."""
    position = jpype.JClass("org.apache.kafka.clients.consumer.OffsetAndMetadata")
    result = jpype.java.util.HashMap()
    for partition, (_, following) in ranges.items():
        result.put(partition_of(topic, partition), position(following, metadata))
    return result


def call(name: str, function: Callable[[], Result], *, patience: float = 0) -> Result:
    """Make a call, and retry it for up to `patience` seconds while the client reports a retriable error.

    Raises ClientError, whose `call` is `name`.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            return function()
        except jpype.JException as error:
            cause = _cause(error)
            retriable = isinstance(cause, jpype.JClass("org.apache.kafka.common.errors.RetriableException"))
            if not retriable or time.monotonic() > deadline:
                raise client_error(name, cause) from None
            time.sleep(0.1)


def client_error(name: str, cause: Any) -> ClientError:
    """Return a ClientError for an exception that `_cause` returned.

    Its code is Kafka's name for the error, or the name of the exception's class where Kafka has none.
    """
    errors = jpype.JClass("org.apache.kafka.common.protocol.Errors")
    code = str(errors.forException(cause).name())
    if code == "UNKNOWN_SERVER_ERROR":
        code = str(cause.getClass().getSimpleName())
    fatal = code in _FATAL or isinstance(cause, jpype.java.lang.IllegalStateException)
    return ClientError(name, code, abortable=not fatal, fatal=fatal, text=str(cause.getMessage()))


def _cause(error: Any) -> Any:
    """Return the exception that the client met first.

    A producer in its error state wraps it in another KafkaException, and a future in an ExecutionException.
    """
    api = jpype.JClass("org.apache.kafka.common.errors.ApiException")
    while not isinstance(error, api) and error.getCause() is not None:
        error = error.getCause()
    return error
