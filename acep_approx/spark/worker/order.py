"""The order of events: by time, then by id or by content, so that it does not depend on how Spark moved them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints


def in_order(table: pa.Table, ticks: Ints, ties: Sequence[str]) -> tuple[pa.Table, Ints]:
    """Events in the order in which they are matched.

    Parameters
    ----------
    table : pyarrow.Table
    ticks : int64 array, shape (rows,)
        Their times.
    ties : sequence of str
        Columns that order events of the same time: nulls last, numbers and texts (by their bytes) rising. Events that
        are the same in all of them stay in the order in which they are.

    Returns
    -------
    table, ticks
        Sorted.

    Complexity: O(rows · log rows), and the columns are only compared where times are the same.

    Examples
    --------
    >>> events = pa.table({"ts": [2, 1, 1], "id": [0, 9, 8]})
    >>> in_order(events, events.column("ts").to_numpy(), ["id"])[0].column("id").to_pylist()
    [8, 9, 0]
    """
    order = np.argsort(ticks, kind="stable")
    sorted_ticks = ticks[order]
    same = sorted_ticks[1:] == sorted_ticks[:-1]
    if same.any() and ties:
        tied = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
        place = pa.array(order[tied])
        columns = {"tick": pa.array(sorted_ticks[tied]), **{f"_{n}": table.column(n).take(place) for n in ties}}
        keys = [(name, "ascending") for name in columns]
        columns["last"] = pa.array(np.arange(len(tied)))  # Arrow's sort is not stable
        found = pc.sort_indices(pa.table(columns), sort_keys=[*keys, ("last", "ascending")])
        order[tied] = order[tied][found.to_numpy()]
    if (order[1:] > order[:-1]).all():
        return table, ticks
    return table.take(pa.array(order)), ticks[order]
