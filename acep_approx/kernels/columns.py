"""Bound events as columns of variables."""

from __future__ import annotations

from acep_approx.arrays import Ints
from acep_approx.kernels.jit import ix, kernel


@kernel
def spread(offset: Ints, ids: Ints, label: Ints, column: Ints, out: Ints, bound: Ints) -> None:
    """Write the rows of matches into columns, one after the other in ``out``, which is left alone where none is bound.

    Parameters
    ----------
    offset : int64, shape (m + 1,)
        Match ``m`` binds ``ids[offset[m] : offset[m + 1]]`` to the variables ``label``.
    column : int64
        Per label its column; -1: it has none.
    out : int64, shape (columns * m,)
    bound : int64, shape (columns,)
        Zeros; gets how many rows were written to each column.

    Complexity: O(bound events).
    """
    matches = offset.size - 1
    for m in range(matches):
        for i in range(offset[ix(m)], offset[ix(m + 1)]):
            c = column[ix(label[ix(i)])]
            if c >= 0:
                out[ix(c * matches + m)] = ids[ix(i)]
                bound[ix(c)] += 1
