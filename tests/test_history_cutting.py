"""Groups of values that tell most of success: the best of all cuts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.fitting import PRIOR, best_cuts


def likelihood(births: np.ndarray, success: np.ndarray, cuts: tuple[int, ...]) -> float:
    """Logarithm of how likely success is, where each group has its own rate."""
    total, mean = 0.0, success.sum() / births.sum()
    for part in np.split(np.arange(len(births)), list(cuts)):
        n, k = births[part].sum(), success[part].sum()
        rate = min(max((k + PRIOR * mean) / (n + PRIOR), 1e-12), 1 - 1e-12)
        total += k * np.log(rate) + (n - k) * np.log(1 - rate)
    return float(total)


@given(
    st.lists(st.tuples(st.integers(1, 60), st.floats(0, 1)), min_size=2, max_size=8),
    st.integers(1, 8),
)
def test_no_other_cuts_explain_success_better(bins, groups):
    births = np.array([n for n, _ in bins], np.float64)
    success = births * np.array([share for _, share in bins])
    found = tuple(best_cuts(births, success, groups).tolist())
    assert len(found) == min(groups, len(bins)) - 1
    every = combinations(range(1, len(bins)), len(found))
    assert likelihood(births, success, found) == pytest.approx(max(likelihood(births, success, cuts) for cuts in every))


def test_nothing_succeeds():
    assert best_cuts(np.full(5, 10.0), np.zeros(5), 2).shape == (1,)


def test_a_single_bin_is_one_group():
    assert best_cuts(np.array([3.0]), np.array([1.0]), 7).tolist() == []
