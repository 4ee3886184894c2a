"""MAXIMAL: only matches whose set of events is no proper part of that of another match are listed.

A match can only be contained in one that ends with it or later, and that starts with it or earlier. So when a match is
complete all that it contains are complete, too, and what waits until its window has closed has met all that contain it.

Source: MAX of CORE (Bucchi et al., PVLDB 15(9) 2022). Oracle: ``tests/naive_selection.py``.
"""

from __future__ import annotations

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.kernels.runs import selection as kernel


def contained(which: Ints, slot: Ints, offset: Ints, row: Ints) -> Bools:
    """Which matches have a set of events that is a proper part of that of one of some matches.

    Parameters
    ----------
    which : int64 array
        Numbers of the matches that may contain others.
    slot : int64 array, shape (matches,)
        Key slots: only matches of one slot are compared.
    offset : int64 array, shape (matches + 1,)
    row : int64 array
        Match ``m`` has the events ``row[offset[m] : offset[m + 1]]``, ascending, at least one.

    Complexity: O(n log n), and for each event of ``which`` what the matches that end with it hold.
    """
    found = np.zeros(len(slot), np.bool_)
    last = row[offset[1:] - 1]
    kernel.contained(which, slot, last, np.lexsort((last, slot)), offset, row, found)
    return found
