"""Recognise in the history how a worker's client was fenced.

A worker can be fenced by generation: the group coordinator refuses its offsets, and the client reports an abortable
error (KIP-447). Or it can be fenced by epoch: the transaction coordinator has raised the producer epoch, and the client
reports a fatal error (KIP-98).
"""

from typing import Literal

from onceproof.harness.record.events import FaultTarget
from onceproof.harness.record.history import Events

Fenced = Literal["generation", "epoch", "either"]
# librdkafka uses Kafka's names, except for its local errors, whose names begin with an underscore. The Java client
# raises CommitFailedException for offsets whose member or generation the group does not know.
BY_GENERATION = {
    "UNKNOWN_MEMBER_ID",
    "ILLEGAL_GENERATION",
    "FENCED_INSTANCE_ID",
    "STALE_MEMBER_EPOCH",
    "FENCED_MEMBER_EPOCH",
    "REBALANCE_IN_PROGRESS",
    "CommitFailedException",
}
BY_EPOCH = {"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE", "INVALID_PRODUCER_ID_MAPPING"}


_SAYS = {"generation": "generation", "epoch": "epoch", "either": "generation or epoch"}


def not_fenced(by: Fenced, target: FaultTarget, since: float, events: Events) -> str | None:
    """Return a message if the worker named by `target` did not report being fenced, and None if it did.

    Only errors after `since` (seconds, the harness's clock) and up to the outcome of the worker's next transaction
    count. Fenced by `generation` means an abortable error of the group, by `epoch` a fatal error of the producer, and
    `either` one of both.
    """
    errors = events.errors_met(target, since)
    generation = by != "epoch" and any(each.code in BY_GENERATION and not each.fatal for each in errors)
    epoch = by != "generation" and any(each.code in BY_EPOCH and each.fatal for each in errors)
    if generation or epoch:
        return None
    reported = ", ".join(map(str, errors[:3]))
    return f"{target.role} did not report being fenced by {_SAYS[by]}; it reported: {reported or 'no error'}"
