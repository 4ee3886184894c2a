"""Numbers of matches, which stop growing at a limit: from there on they say "at least so many"."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.errors import CappedCountWarning
from acep_approx.events.counts import MOST_COUNTED, is_at_least

AT_LEAST = "at_least"
"""The column that says whether there may be more matches than a count says."""


def sums(counts: Ints, first: Ints) -> Ints:
    """Sums of runs of counts that begin at ``first``; like each of the counts at most ``MOST_COUNTED``.

    Examples
    --------
    >>> sums(np.array([2, 3, 2**62, 2**62]), np.array([0, 2])).tolist() == [5, 2**63 - 1]
    True
    """
    if not len(first):
        return first
    high, low = np.add.reduceat(counts >> 32, first), np.add.reduceat(counts & 0xFFFFFFFF, first)
    high += low >> 32
    return np.where(high >> 31 > 0, MOST_COUNTED, (high << 32) + (low & 0xFFFFFFFF))


def count_columns(matches: Ints) -> dict[str, pa.Array]:
    """Counts as columns of a table, with whether each of them is exact.

    Examples
    --------
    >>> count_columns(np.array([7, 2**63 - 1]))[AT_LEAST].to_pylist()
    [False, True]
    """
    return {"matches": pa.array(matches), AT_LEAST: pa.array(matches >= MOST_COUNTED)}


def warn_at_least(totals: Iterable[int]) -> None:
    """Warn of sums of counts that may be less than there is."""
    if any(map(is_at_least, totals)):
        message = (
            "there are more matches than can be counted: the count of one match point stops growing at 2^63 - 1, so "
            f"numbers from {MOST_COUNTED:,} on mean `at least`; match points are exact"
        )
        warnings.warn(message, CappedCountWarning, stacklevel=3)
