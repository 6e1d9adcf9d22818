"""What reader and writer share: the JVM, configuration, the client's errors in our words, calls that are repeated."""

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
    """The process's JVM, with the client of the version that the configuration names (`java==3.9.2`)."""
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
    """Any client of this library."""
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
    """As Java's own type, every value in words."""
    made = jpype.java.util.Properties()
    for key, value in settings.items():
        made.setProperty(key, str(value).lower() if isinstance(value, bool) else str(value))
    return made


def millis(count: int) -> Any:
    return jpype.java.time.Duration.ofMillis(count)


def partition_of(topic: str, partition: int) -> Any:
    return jpype.JClass("org.apache.kafka.common.TopicPartition")(topic, partition)


def positions(topic: str, ranges: Mapping[int, tuple[int, int]], metadata: str) -> Any:
    """The positions behind these ranges."""
    position = jpype.JClass("org.apache.kafka.clients.consumer.OffsetAndMetadata")
    made = jpype.java.util.HashMap()
    for partition, (_, following) in ranges.items():
        made.put(partition_of(topic, partition), position(following, metadata))
    return made


def call(name: str, function: Callable[[], Result], *, patience: float = 0) -> Result:
    """Call, and call again while the client says that it ran out of time, until the deadline. Raises ClientError."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return function()
        except jpype.JException as error:
            cause = _cause(error)
            waits = isinstance(cause, jpype.JClass("org.apache.kafka.common.errors.RetriableException"))
            if not waits or time.monotonic() > deadline:
                raise client_error(name, cause) from None
            time.sleep(0.1)


def client_error(name: str, cause: Any) -> ClientError:
    """`cause` as `_cause` gives it. The code is Kafka's name for the error, or the exception's where it has none."""
    errors = jpype.JClass("org.apache.kafka.common.protocol.Errors")
    code = str(errors.forException(cause).name())
    if code == "UNKNOWN_SERVER_ERROR":
        code = str(cause.getClass().getSimpleName())
    fatal = code in _FATAL or isinstance(cause, jpype.java.lang.IllegalStateException)
    return ClientError(name, code, abortable=not fatal, fatal=fatal, text=str(cause.getMessage()))


def _cause(error: Any) -> Any:
    """What the client itself met: a producer in its error state wraps that in one KafkaException more, and a future in
    an ExecutionException."""
    api = jpype.JClass("org.apache.kafka.common.errors.ApiException")
    while not isinstance(error, api) and error.getCause() is not None:
        error = error.getCause()
    return error
