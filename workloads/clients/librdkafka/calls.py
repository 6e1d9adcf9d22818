"""What reader and writer share: configuration, the client's errors in our words, and calls that are repeated."""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from onceproof.workloads.clients import ClientError
from onceproof.workloads.clients.settings import Settings, settled

Result = TypeVar("Result")
CALL_TIMEOUT_S = 5.0
_WAITING = (
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
    """Any client of this library."""
    return settled(config, {"topic.metadata.refresh.interval.ms": 5000, "log_level": 3, **ours})


def positions(topic: str, ranges: Mapping[int, tuple[int, int]], metadata: str) -> list[TopicPartition]:
    """The positions behind these ranges."""
    return [TopicPartition(topic, partition, following, metadata) for partition, (_, following) in ranges.items()]


def call(name: str, function: Callable[[], Result]) -> Result:
    try:
        return _asked(function)
    except (KafkaException, SystemError) as error:
        raise client_error(name, _told(error)) from None


def _asked(function: Callable[[], Result]) -> Result:
    """The call; once more when it ended without a word, as `flush` may do when a fatal error comes up meanwhile: the
    binding knows that there was an exception and has lost it. The client says it again when it is asked again."""
    try:
        return function()
    except SystemError as error:
        if error.__cause__ is not None:
            raise
        return function()


def _told(error: KafkaException | SystemError) -> KafkaError:
    """The client's own error. When a fatal one comes up while delivery callbacks are served, the binding lets it out as
    the cause of a SystemError (confluent-kafka-python #865)."""
    told = error if isinstance(error, KafkaException) else error.__cause__
    if not isinstance(told, KafkaException):
        raise error
    found: KafkaError = told.args[0]
    return found


def retrying(name: str, patience: float, function: Callable[[], object]) -> None:
    """Repeat a call whose error is retriable, until the deadline."""
    deadline = time.monotonic() + patience
    while True:
        try:
            _asked(function)
            return
        except (KafkaException, SystemError) as error:
            kafka_error = _told(error)
            if time.monotonic() > deadline or not _retriable(name, kafka_error):
                raise client_error(name, kafka_error) from None
            time.sleep(0.1)


def client_error(name: str, error: KafkaError) -> ClientError:
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
    if name in ("committed", "commit", "list-offsets") and error.code() in _WAITING:
        return True
    return bool(error.retriable())
