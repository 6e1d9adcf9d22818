"""How a client says that it was fenced, and whether a worker was seen to meet it."""

from collections.abc import Sequence
from typing import Literal

from harness import history
from harness.protocols import Event

Fenced = Literal["generation", "epoch"]
# librdkafka's names and Kafka's are the same but for the local ones, which begin with an underscore; the Java client
# has an exception of its own for offsets whose member or generation the group does not know.
BY_GENERATION = {"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_INSTANCE_ID", "STALE_MEMBER_EPOCH",
                 "FENCED_MEMBER_EPOCH", "REBALANCE_IN_PROGRESS", "CommitFailedException"}  # fmt: skip
BY_EPOCH = {"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE", "INVALID_PRODUCER_ID_MAPPING"}


def not_fenced(by: Fenced, target: Event, since: float, events: Sequence[Event]) -> str | None:
    """What to say when this worker met no such error from `since` to its next outcome: by generation an abortable one,
    by epoch a fatal one. `target` is the fault's event that names it."""
    codes = BY_GENERATION if by == "generation" else BY_EPOCH
    errors = history.met(target, since, events)
    if any(error["code"] in codes and error["fatal"] == (by == "epoch") for error in errors):
        return None
    met = ", ".join(map(history.says, errors[:3]))
    return f"{target['role']} was not seen fenced by {by}; it met: {met or 'no error'}"
