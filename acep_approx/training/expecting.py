"""What a history leads to expect of a run inside a budget, and how far it can be relied on.

A past has shown how much is found for a share of the work, and how often matches come. How much both differ from one
stretch of it to another tells how much they may differ in the present. Beyond that a stream changes slowly, by more
than its past has shown: ``DRIFT`` was set by what promises came to on sixty pairs of a past and what followed it
(``python -m experiments.shedding.estimates``). Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from acep_approx.arrays import Floats
from acep_approx.budget.evidence import Expected
from acep_approx.training.pricing import Prices
from acep_approx.training.promise import Promise

DRIFT, OF_RATE = 0.07, 0.1
"""By how much recall differs from that of the past, on the scale of the arc sine (a standard deviation); and which part
of what the rate of match points does: where that is not steady, nothing is."""
LEAST = 0.002
"""Share of the match points that are always taken to be found, and to be missed."""
IN_95 = 1.96
"""Standard deviations between the middle and the ends of an interval of 95%."""
RATE_DRIFT = 0.15
"""By how much the rate of match points differs from that of the past, on the scale of logarithms."""


def expected(prices: Prices, share: float, rate: float) -> Expected | None:
    """What to expect.

    Parameters
    ----------
    prices : Prices
        Of the policy that runs are ranked by.
    share : float
        Of the exact run's work.
    rate : float
        Match points per event of the past.

    Returns
    -------
    Expected or None
        None where the past does not tell stretches of time apart, or has no match points.

    Examples
    --------
    >>> (none,) = Prices().replays
    >>> exact = replace(none, steps=1000, points=80, stretches=(10,) * 8)
    >>> some = replace(none, price=0.1, steps=100, points=40, stretches=(5, 6, 4, 5, 5, 6, 4, 5))
    >>> found = expected(Prices((exact, some)), 0.1, 0.02)
    >>> round(found.recall, 2), round(found.worth), found.stretches
    (0.5, 22, 8)
    """
    found, there = prices.in_stretches(share)
    if not there.sum() or rate <= 0:
        return None
    recall = float((found.sum() + 0.5) / (there.sum() + 1))
    doubt = _doubt(there)
    drift = DRIFT**2 + (OF_RATE * doubt) ** 2
    variance = 2 * _between(found, there, recall) / (4 * recall * (1 - recall)) + drift
    return Expected(recall, 1 / (4 * variance), rate, doubt, len(there))


def promised(past: Expected, promises: Sequence[Promise], share: float) -> Expected:
    """The same with the recall that runs inside budgets were promised, where there are promises.

    Parameters
    ----------
    past : Expected
    promises : sequence of Promise
        Of runs with the same output; by rising budget.
    share : float
        Of the exact run's work.

    Examples
    --------
    >>> past = Expected(0.5, 22.0, 0.02, 0.2, 8)
    >>> rows = Promise(0.05, "points", 1.0, 0.6, 0.5, 0.7), Promise(0.2, "points", 4.0, 0.8, 0.7, 0.9)
    >>> found = promised(past, rows, 0.1)
    >>> round(found.recall, 2), round(found.worth)
    (0.7, 28)
    >>> promised(past, (), 0.1) == past
    True
    """
    if not promises:
        return past
    shares = np.log([*(promise.share for promise in promises), 1.0])
    recall, low, high = (
        float(np.interp(np.log(max(share, 1e-9)), shares, [*(getattr(promise, name) for promise in promises), 1.0]))
        for name in ("recall", "low", "high")
    )
    middle, *ends = np.arcsin(np.sqrt([min(max(recall, LEAST), 1 - LEAST), low, high]))
    deviation = float(np.abs(np.array(ends) - middle).max()) / IN_95
    variance = deviation**2 + DRIFT**2 + (OF_RATE * past.doubt) ** 2
    return replace(past, recall=float(np.sin(middle) ** 2), worth=1 / (4 * variance))


def _between(found: Floats, there: Floats, recall: float) -> float:
    """The variance of a recall, as one stretch shows another; no less than if each match point were found by chance."""
    number = len(there)
    by_stretch = number / (number - 1) * float(((found - recall * there) ** 2).sum()) / float(there.sum()) ** 2
    return max(by_stretch, recall * (1 - recall) / float(there.sum()))


def _doubt(there: Floats) -> float:
    """By how much the logarithm of the rate varies between stretches, chance of single match points left out."""
    mean = float(there.mean())
    between = max(float(there.var(ddof=1)) - mean, 0.0) / mean**2
    return float(np.sqrt(np.log1p(between) + 1 / there.sum() + RATE_DRIFT**2))
