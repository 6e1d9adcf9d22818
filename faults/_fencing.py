"""How a client says that it was fenced, and whether a worker was seen to meet it."""

from collections.abc import Sequence
from typing import Literal

from harness.protocols import Event

Fenced = Literal["generation", "epoch"]
# librdkafka's names and Kafka's are the same but for the local ones, which begin with an underscore.
BY_GENERATION = {"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_INSTANCE_ID", "STALE_MEMBER_EPOCH",
                 "FENCED_MEMBER_EPOCH", "REBALANCE_IN_PROGRESS"}  # fmt: skip
BY_EPOCH = {"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE", "INVALID_PRODUCER_ID_MAPPING"}


def not_fenced(by: Fenced, source: str, since: float, events: Sequence[Event]) -> str | None:
    """What to say when this process met no such error from `since` on: by generation abortable, by epoch fatal."""
    codes = BY_GENERATION if by == "generation" else BY_EPOCH
    errors = [e for e in events if e["event"] == "error" and e["source"] == source and e["at"] > since]
    if any(e["code"] in codes and e["fatal"] == (by == "epoch") for e in errors):
        return None
    met = ", ".join(f"{e['call']}: {e['code']}{' (fatal)' if e['fatal'] else ''}" for e in errors[:3])
    return f"{source} was not seen fenced by {by}; it met: {met or 'no error'}"
