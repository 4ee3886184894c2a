"""Few of many: each kind gets its share, and what is chosen of a kind lies evenly over all of it."""

from __future__ import annotations

import numpy as np

from acep_approx.arrays import Ints


def spread(kinds: Ints, most: int) -> Ints:
    """Places of at most ``most`` items: rare kinds whole, the others evenly.

    Parameters
    ----------
    kinds : numpy.ndarray of int64
        The kind of each item.
    most : int
        Not negative.

    Returns
    -------
    numpy.ndarray of int64
        In order. The same for the same arguments.

    Examples
    --------
    >>> spread(np.array([0, 0, 0, 0, 1, 0, 0, 0, 0]), 4).tolist()
    [0, 2, 4, 6]
    >>> spread(np.array([0, 1]), 9).tolist()
    [0, 1]
    """
    if len(kinds) <= most:
        return np.arange(len(kinds))
    names, counts = np.unique(kinds, return_counts=True)
    chosen, left = [], most
    for place, kind in enumerate(np.argsort(counts, kind="stable").tolist()):
        share = min(int(counts[kind]), left // (len(names) - place))
        if share:
            mine = np.flatnonzero(kinds == names[kind])
            chosen.append(mine[np.arange(share) * len(mine) // share])
        left -= share
    places: Ints = np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, np.int64)
    return places
