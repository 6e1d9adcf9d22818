"""The APIs of Kafka's protocol whose requests a fault can take, with their keys."""

from collections.abc import Mapping
from typing import Literal

Api = Literal[
    "Produce",
    "Fetch",
    "OffsetCommit",
    "FindCoordinator",
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "EndTxn",
    "WriteTxnMarkers",
    "TxnOffsetCommit",
]
KEYS: Mapping[Api, int] = {
    "Produce": 0,
    "Fetch": 1,
    "OffsetCommit": 8,
    "FindCoordinator": 10,
    "InitProducerId": 22,
    "AddPartitionsToTxn": 24,
    "AddOffsetsToTxn": 25,
    "EndTxn": 26,
    "WriteTxnMarkers": 27,
    "TxnOffsetCommit": 28,
}
