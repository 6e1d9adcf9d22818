"""What the history says of one fault."""

from collections.abc import Sequence

from harness.plan import PlannedFault
from harness.protocols import Event


def told(kind: str, fault: PlannedFault, events: Sequence[Event]) -> Event:
    """The first event of this kind that is this fault's. It must be there: `inject` left it, or the nemesis did."""
    return next(event for event in events if event["event"] == kind and event["fault"] == fault.id)
