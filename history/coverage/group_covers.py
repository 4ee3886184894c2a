"""Which groups cover which, as plain data: a run that sheds needs it, and nothing of what finds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from history.arrays import Floats, Ints


@dataclass(frozen=True)
class GroupCovers:
    """Which groups cover which, and how much of what they lead to; groups are numbered over all places.

    Attributes
    ----------
    first : int64 array, shape (groups + 1,)
        Where the covers of each group begin in the others.
    cover : int64 array, shape (covers,)
        A group whose runs reach some of what runs of the group reach.
    share : float64 array, shape (covers,)
        What share of it.
    more : float64 array, shape (covers,)
        What share of it no cover before it in the list reaches; 0 where that is not known.
    """

    first: Ints
    cover: Ints
    share: Floats
    more: Floats

    @classmethod
    def of(cls, lists: Sequence[Sequence[tuple[int, float, float]]]) -> GroupCovers:
        """From the (cover, share, more) of each group."""
        ends = np.cumsum([0, *(len(some) for some in lists)])
        rows = [row for some in lists for row in some]
        columns = np.array(rows, np.float64).reshape(-1, 3)
        return cls(ends, columns[:, 0].astype(np.int64), columns[:, 1].copy(), columns[:, 2].copy())
