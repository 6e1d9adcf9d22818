"""Helpers of the librdkafka driver: configuration, conversions, translation of errors, and retries."""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from onceproof.workloads.clients import ClientError
from onceproof.workloads.clients.settings import Settings, settled

Result = TypeVar("Result")
CALL_TIMEOUT_S = 5.0
_RETRIED = (
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._WAIT_COORD,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
)


def configured(config: Mapping[str, Any], ours: Settings) -> Settings:
    """Return the complete configuration of a client; `ours` overrides the defaults given here."""
    return settled(config, {"topic.metadata.refresh.interval.ms": 5000, "log_level": 3, **ours})


def positions(topic: str, ranges: Mapping[int, tuple[int, int]], metadata: str) -> list[TopicPartition]:
    """Return the offsets that follow these ranges, with their metadata, as a list for a commit."""
    return [TopicPartition(topic, partition, following, metadata) for partition, (_, following) in ranges.items()]


def call(name: str, function: Callable[[], Result]) -> Result:
    """Make a call. Raises ClientError, whose `call` is `name`."""
    try:
        return _attempt(function)
    except (KafkaException, SystemError) as error:
        raise client_error(name, _cause(error)) from None


def _attempt(function: Callable[[], Result]) -> Result:
    """Make a call, and make it again if it ended with a SystemError that has no cause.

    That may happen to `flush` when a fatal error occurs meanwhile: the binding reports an exception and has lost it.
    The client reports the error at the second call.
    """
    try:
        return function()
    except SystemError as error:
        if error.__cause__ is not None:
            raise
        return function()


def _cause(error: KafkaException | SystemError) -> KafkaError:
    """Return the client's own error.

    When a fatal error occurs while delivery callbacks are served, the binding raises it as the cause of a SystemError
    (confluent-kafka-python #865).
    """
    raised = error if isinstance(error, KafkaException) else error.__cause__
    if not isinstance(raised, KafkaException):
        raise error
    found: KafkaError = raised.args[0]
    return found


def retrying(name: str, patience: float, function: Callable[[], object]) -> None:
    """Make a call, and retry it for up to `patience` seconds while its error is retriable.

    Raises ClientError, whose `call` is `name`.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            _attempt(function)
            return
        except (KafkaException, SystemError) as error:
            kafka_error = _cause(error)
            if time.monotonic() > deadline or not _retriable(name, kafka_error):
                raise client_error(name, kafka_error) from None
            time.sleep(0.1)


def client_error(name: str, error: KafkaError) -> ClientError:
    """Return a ClientError for an error of librdkafka. A record that was not delivered is abortable."""
    return ClientError(
        name,
        error.name(),
        abortable=bool(error.txn_requires_abort()) or (name == "produce" and not error.fatal()),
        fatal=bool(error.fatal()),
        text=error.str() or "",
    )


def _retriable(name: str, error: KafkaError) -> bool:
    if error.fatal() or error.txn_requires_abort():
        return False
    if name in ("committed", "commit", "list-offsets") and error.code() in _RETRIED:
        return True
    return bool(error.retriable())
