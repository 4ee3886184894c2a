"""Whether saved runs are as runs can be: what comes from outside is looked at before kernels follow it."""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import block_kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.runs.pools import COLUMNS
from acep_approx.kernels.runs.saved import PENDING, POOL_MASK, SAVED, SPAN
from acep_approx.kernels.runs.scores import GROUP_BITS
from acep_approx.kernels.runs.vm import NULL

ANY = -1
"""The limit of a column that may hold any word."""
GROUPS = -2
"""The limit of a column that holds groups, of which there are none; one lower for each that there is."""


@inline
def is_within(word: int, limit: int, stamp: int) -> bool:
    """Whether a word can stand in a column of a limit."""
    if limit <= GROUPS:
        return word >> GROUP_BITS != stamp or (word & ((1 << GROUP_BITS) - 1)) < GROUPS - limit
    return limit == ANY or word == NULL or 0 <= word < limit


@block_kernel
def fit(spans: Ints, stored: Ints, fields: Ints, limits: Ints, links: int, stamp: int) -> bool:
    """Whether the runs of all keys stand within ``stored``, pool by pool, and hold only what can be followed.

    Parameters
    ----------
    spans, stored : int64 arrays
        See ``saved``.
    fields : int64 array, shape (pools,)
        Per pool its columns behind start and link.
    limits : int64 array, shape (pools * widest,)
        Per pool and column behind start and link: NULL, or a word from 0 on and below this; or ``ANY``, ``GROUPS``.
    links : int
        How many links there are.
    stamp : int
        Of groups that are told apart as now; others are found out anew.

    Complexity: O(words of all runs).
    """
    pools, widest = len(fields), len(limits) // len(fields)
    for key in range(len(spans) // SPAN):
        at, length = spans[key * SPAN], spans[key * SPAN + 1]
        if at < 0 or length < 0 or length > len(stored) or at > len(stored) - length:
            return False
        end, before = at + length, 0
        while at < end:
            if end - at < SAVED:
                return False
            pool, plain, runs = stored[at] & POOL_MASK, stored[at] >> PENDING, stored[at + 1]
            if pool <= before or pool >= pools or runs < 0 or plain < 0 or plain > runs:
                return False
            width = COLUMNS + fields[pool]
            at += SAVED
            if runs > (end - at) // width:
                return False
            for run in range(runs):
                if stored[at + runs + run] >= links:
                    return False
            for f in range(fields[pool]):
                limit = limits[pool * widest + f]
                for run in range(runs if limit != ANY else 0):
                    if not is_within(stored[at + (COLUMNS + f) * runs + run], limit, stamp):
                        return False
            at += width * runs
            before = pool
    return True
