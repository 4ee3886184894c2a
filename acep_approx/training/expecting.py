"""What a history leads to expect of a run inside a budget, and how far it can be relied on.

A past has shown how much is found for a share of the work, and how often matches come. How much both differ from one
stretch of it to another tells how much they may differ in the present. Beyond that a stream changes slowly, by more
than its past has shown: ``DRIFT`` was set by what promises came to on sixty pairs of a past and what followed it
(``python -m experiments.shedding.estimates``). Source: ours.
"""

from __future__ import annotations

import numpy as np

from acep_approx.arrays import Floats
from acep_approx.budget.evidence import Expected
from acep_approx.training.pricing import Prices

DRIFT, OF_RATE = 0.07, 0.2
"""By how much recall differs from that of the past, on the scale of the arc sine (a standard deviation); and which part
of what the rate of match points does: where that is not steady, nothing is."""
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
    >>> from acep_approx.training.pricing import PricePoint
    >>> exact = PricePoint(0.0, 1000, 80, stretches=(10,) * 8)
    >>> some = PricePoint(0.1, 100, 40, stretches=(5, 6, 4, 5, 5, 6, 4, 5))
    >>> found = expected(Prices((exact, some)), 0.1, 0.02)
    >>> round(found.recall, 2), round(found.worth), found.stretches
    (0.5, 20, 8)
    """
    found, there = prices.in_stretches(share)
    if not there.sum() or rate <= 0:
        return None
    recall = float((found.sum() + 0.5) / (there.sum() + 1))
    doubt = _doubt(there)
    drift = DRIFT**2 + (OF_RATE * doubt) ** 2
    variance = 2 * _between(found, there, recall) / (4 * recall * (1 - recall)) + drift
    return Expected(recall, 1 / (4 * variance), rate, doubt, len(there))


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
