"""Reads the partitions that a group has assigned to a member, from the response that tells it."""

import base64
import struct
from collections.abc import Mapping
from typing import Any

_SHORT, _INT = struct.Struct(">h"), struct.Struct(">i")


def assigned(assignment: str | Mapping[str, Any]) -> dict[str, list[int]]:
    """Return topic → partitions: of a SyncGroup response, in Base64, or of a ConsumerGroupHeartbeat response."""
    return _classic(assignment) if isinstance(assignment, str) else _of_consumer_protocol(assignment)


def _classic(assignment: str) -> dict[str, list[int]]:
    """Return topic → partitions of an assignment of the classic protocol: ConsumerProtocolAssignment, in Base64."""
    data = base64.b64decode(assignment)
    place = _SHORT.size  # after the version
    (topics,) = _INT.unpack_from(data, place)
    place += _INT.size
    found = {}
    for _ in range(topics):
        (length,) = _SHORT.unpack_from(data, place)
        place += _SHORT.size
        name = data[place : place + length].decode()
        place += length
        (count,) = _INT.unpack_from(data, place)
        place += _INT.size
        found[name] = [_INT.unpack_from(data, place + _INT.size * index)[0] for index in range(count)]
        place += _INT.size * count
    return found


def _of_consumer_protocol(assignment: Mapping[str, Any]) -> dict[str, list[int]]:
    """Return topic → partitions of an assignment of the consumer protocol (KIP-848)."""
    return {each.get("name", ""): each["partitions"] for each in assignment.get("topicPartitions", ())}
