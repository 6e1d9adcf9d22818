"""How a client reports that it was fenced, and whether a worker was seen to meet such an error."""

from typing import Literal

from onceproof.harness.record.events import FaultTarget
from onceproof.harness.record.history import Events

Fenced = Literal["generation", "epoch"]
# librdkafka's names and Kafka's are the same but for librdkafka's local ones, which begin with an underscore; the Java
# client has an exception of its own for offsets whose member or generation the group does not know.
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


def not_fenced(by: Fenced, target: FaultTarget, since: float, events: Events) -> str | None:
    """What to say when the worker that `target` names met no fencing error between `since` and the outcome of its next
    transaction: by generation an abortable one (KIP-447), by epoch a fatal one (KIP-98). None when it did."""
    codes = BY_GENERATION if by == "generation" else BY_EPOCH
    errors = events.errors_met(target, since)
    if any(error.code in codes and error.fatal == (by == "epoch") for error in errors):
        return None
    met = ", ".join(map(str, errors[:3]))
    return f"{target.role} was not seen fenced by {by}; it met: {met or 'no error'}"
