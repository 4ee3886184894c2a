"""In which order results of many queries stand: by the end of each, then by their queries."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.events.columns import to_arrow
from acep_approx.kernels import group as kernel

SPARSE = 8
"""Keys in a range of so many times their number are sorted; in a narrower one they are counted."""


def by_end(table: pa.Table) -> pa.Table:
    """Results in the order of their ends, then of their queries: parts of a batch have all of some queries."""
    end = table.column("end").combine_chunks().cast(pa.int64()).to_numpy()
    return table.take(to_arrow(in_order(table.column("query").to_numpy(), end)))


def in_order(*keys: Ints) -> Ints:
    """Places in the order of the last key, then of the one before, and so on, as ``numpy.lexsort`` has it.

    Keys in a narrow range are counted. Complexity: O(rows + ranges); O(rows x log rows) where they are wide.
    """
    size = len(keys[0])
    order = np.arange(size)
    for key in keys:
        low = int(key.min()) if size else 0
        span = int(key.max()) - low + 1 if size else 0
        if span > SPARSE * size:
            order = order[np.argsort(key[order], kind="stable")]
            continue
        before, order = order, np.empty(size, np.int64)
        kernel.order_by(key - low, before, np.zeros(span + 1, np.int64), order)
    return order
