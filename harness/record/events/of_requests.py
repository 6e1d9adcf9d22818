"""The events of requests that a rule of a fault matched in the request proxy."""

from typing import ClassVar

from pydantic import Field

from onceproof.harness.record.events.base import FaultEvent


class RequestEvent(FaultEvent):
    """An event about a request that a rule of a fault matched; `correlation` is its correlation id."""

    link: str
    connection: int
    correlation: int


class RequestMatched(RequestEvent):
    """A request matched a rule. `key` is its API key, and `size` its size in bytes on the wire."""

    kind: ClassVar = "request-matched"
    action: str
    key: int
    version: int
    client: str
    size: int


class RequestDelivered(RequestEvent):
    """A matched request was passed on to the broker."""

    kind: ClassVar = "request-delivered"


class RequestAnswered(RequestEvent):
    """The response to a matched request was passed on to the client.

    `errors` are the error codes in the response to a request that was held, without 0.
    """

    kind: ClassVar = "request-answered"
    errors: list[int] = Field(default_factory=list)


class RequestDropped(RequestEvent):
    """The response to a matched request was dropped, and the connection closed."""

    kind: ClassVar = "request-dropped"


class RequestLost(RequestEvent):
    """A matched request was not delivered, because the connection to the broker had ended."""

    kind: ClassVar = "request-lost"
