"""Cut values that are in order into groups that tell most of success.

Groups of equally many runs (quantiles) cut where runs are many, whether or not anything changes there, and put a value
that always succeeds beside one that never does. These are the cuts between which success differs most, found by
dynamic programming: Fisher (1958), "On grouping for maximum homogeneity". His measure is the variance; ours is the
likelihood, which is what the test that judges a feature asks for. The paper of the history graph has no such cuts.
"""

from __future__ import annotations

import numpy as np

from history.arrays import Floats, Ints

PRIOR = 10.0
"""Births at the mean rate that are added to those of a value, or of a group, before its rate is taken."""
BINS = 64
"""Places to cut at, at most."""
BIN_BIRTHS = 25
"""Births between two of them at least, so that small samples are cut nearly at quantiles."""


def bins_for(births: int, groups: int) -> int:
    """How many bins to tell apart before they are put together to groups.

    Examples
    --------
    >>> [bins_for(births, 7) for births in (100, 1000, 10_000)]
    [7, 40, 64]
    """
    return max(min(births // BIN_BIRTHS, BINS), groups)


def rates(births: Floats, success: Floats, mean: float) -> Floats:
    """Share of births that succeed, drawn to the mean where they are few; between 0 and 1, and never quite either.

    Examples
    --------
    >>> rates(np.array([0.0, 90.0]), np.array([0.0, 90.0]), 0.5).tolist()
    [0.5, 0.95]
    """
    return np.clip((success + PRIOR * mean) / (births + PRIOR), 1e-12, 1 - 1e-12)


def best_cuts(births: Floats, success: Floats, groups: int) -> Ints:
    """Where to cut a row of bins, so that the rates of the groups explain success best.

    Parameters
    ----------
    births, success : float64 array, shape (bins,)
        How many births each bin has, and how many of them succeed.
    groups : int
        At least 1; no more come than there are bins.

    Returns
    -------
    int64 array, shape (groups - 1,)
        The first bin of each group but the first, ascending.

    Complexity: O(bins² · groups).

    Examples
    --------
    >>> best_cuts(np.full(6, 100.0), np.array([0.0, 0.0, 0.0, 90.0, 90.0, 40.0]), 3).tolist()
    [3, 5]
    """
    bins = len(births)
    all_births, all_success = (np.concatenate([[0.0], np.cumsum(column)]) for column in (births, success))
    n = all_births[None, :] - all_births[:, None]
    k = all_success[None, :] - all_success[:, None]
    first, behind = np.indices(n.shape)
    rate = rates(np.maximum(n, 0.0), np.maximum(k, 0.0), all_success[-1] / max(all_births[-1], 1.0))
    likelihood = np.where(first < behind, k * np.log(rate) + (n - k) * np.log1p(-rate), -np.inf)
    best, came_from = likelihood[0], []
    for _ in range(min(groups, bins) - 1):
        through = best[:, None] + likelihood
        came_from.append(through.argmax(axis=0))
        best = through.max(axis=0)
    cuts = [bins]
    for before in reversed(came_from):
        cuts.append(int(before[cuts[-1]]))
    return np.array(cuts[:0:-1], np.int64)
