"""What a number of runs says about the probability of a failure in one run.

interval(3, 12)       (0.05, 0.57): the 95% interval of Clopper and Pearson (1934)
upper_bound(50)       0.058: no failure in 50 runs
passes_needed(0.5)    6: if a run fails with probability 0.5, six passes in a row have a probability of 2% at most
"""

import math
from collections.abc import Callable

CONFIDENCE = 0.95
DOUBT = 0.02  # the probability with which a plan is rejected although it fails
_STEPS = 60  # of the bisection; more than a double has bits


def interval(failures: int, runs: int) -> tuple[float, float]:
    """Return the 95% interval of the probability of a failure. Raises ValueError unless 0 <= failures <= runs."""
    if not 0 <= failures <= runs or not runs:
        raise ValueError(f"{failures} failures in {runs} runs")
    tail = (1 - CONFIDENCE) / 2
    low = 0.0 if not failures else _root(lambda p: _at_least(failures, runs, p) - tail)
    high = 1.0 if failures == runs else _root(lambda p: tail - (1 - _at_least(failures + 1, runs, p)))
    return low, high


def upper_bound(runs: int) -> float:
    """Return the upper bound on the probability of a failure after so many runs without one, with 95% confidence.

    It is 1 − 0.05^(1/n), which is about 3/n.
    """
    return float(1 - (1 - CONFIDENCE) ** (1 / runs))


def passes_needed(rate: float) -> int:
    """Return the smallest n with (1 − rate)^n <= 0.02. Raises ValueError unless 0 < rate <= 1."""
    if not 0 < rate <= 1:
        raise ValueError(f"a rate of {rate}")
    return 1 if rate == 1 else math.ceil(math.log(DOUBT) / math.log(1 - rate))


def said(failures: int, runs: int) -> str:
    """Return a rate in words: "3 of 4 runs (19% to 99%)"."""
    low, high = interval(failures, runs)
    return f"{failures} of {runs} runs ({low:.0%} to {high:.0%})"


def _at_least(failures: int, runs: int, p: float) -> float:
    """Return the probability of so many failures or more."""
    return sum(math.comb(runs, k) * p**k * (1 - p) ** (runs - k) for k in range(failures, runs + 1))


def _root(rises: Callable[[float], float]) -> float:
    """Return where a function that rises from 0 to 1 passes zero."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if rises(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
