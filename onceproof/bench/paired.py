"""An interval for the median of pairs that were measured in turns.

    interval([0.97, 0.95, 0.99, 0.96, 0.98, 0.97])     Interval(median=0.97, low=0.95, high=0.99)

The interval is that of the sign test: it lies between two of the sorted values, and contains the median with at least
95% probability whatever the distribution is. There is one for six values or more; for six it is their whole range.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

PAIRS_MIN = 6
_OUTSIDE = 0.05  # the probability that the interval does not contain the median


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A median with its interval."""

    median: float
    low: float
    high: float


def interval(values: Sequence[float]) -> Interval:
    """Return the median of at least six values, and its interval. Raises ValueError for fewer values."""
    if len(values) < PAIRS_MIN:
        raise ValueError(f"{len(values)} values; allowed: at least {PAIRS_MIN}")
    left_out, below = 0, 2.0 ** (1 - len(values))
    while below + 2 * math.comb(len(values), left_out + 1) / 2 ** len(values) <= _OUTSIDE:
        left_out += 1
        below += 2 * math.comb(len(values), left_out) / 2 ** len(values)
    ordered = sorted(values)
    return Interval(median=statistics.median(ordered), low=ordered[left_out], high=ordered[-1 - left_out])
