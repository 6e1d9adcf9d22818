"""The refusals in a response that a client must report to its application: it is fenced, or must abort.

A client repeats a request by itself after a retriable error, and its application never learns of that. These errors end
the transaction (KIP-98, KIP-447, KIP-890): after one of the group, or TRANSACTION_ABORTABLE, it can be aborted; after
one of the producer's epoch, the producer cannot go on.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import KafkaError

from onceproof.harness.record.apis import KEYS, Api

# By their names on a broker: ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS, FENCED_INSTANCE_ID,
# FENCED_MEMBER_EPOCH, STALE_MEMBER_EPOCH, TRANSACTION_ABORTABLE
_ABORTABLE = frozenset({22, 25, 27, 82, 110, 113, 120})
# INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED
_FATAL = frozenset({47, 48, 49, 90})
_REPORTED = _ABORTABLE | _FATAL
_OF_TRANSACTIONS: tuple[Api, ...] = (
    "Produce",
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "EndTxn",
    "TxnOffsetCommit",
)
_CALLS = {KEYS[name]: name for name in _OF_TRANSACTIONS}


def refusals(api: int, response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the keys of an event `error` for each of the errors in a response to a request of a transaction."""
    if api not in _CALLS:
        return []
    found = dict.fromkeys(code for code in _codes(response) if code in _REPORTED)
    return [
        {
            "call": _CALLS[api],
            "code": KafkaError(code).name(),
            "text": KafkaError(code).str(),
            "abortable": code in _ABORTABLE,
            "fatal": code in _FATAL,
        }
        for code in found
    ]


def _codes(body: Any) -> Iterator[int]:
    """Yield the error codes in a response: one for the whole, or one for each partition."""
    if isinstance(body, list):
        for each in body:
            yield from _codes(each)
    elif isinstance(body, Mapping):
        for key, value in body.items():
            if key in ("errorCode", "partitionErrorCode"):
                yield value
            else:
                yield from _codes(value)
