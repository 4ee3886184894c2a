"""Match bundles: maximal chains of match points, each at most the window after the one before.

Source: Li and Ge, PVLDB 10(4) 2016, Definition 3. Deviation: with a partition key, bundles are those of each key's own
stream (the paper runs one instance per sub-stream).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def bundles(points: pa.Table, keys: Sequence[str], window: int) -> pa.Table:
    """Chain match points to bundles.

    Parameters
    ----------
    points : pyarrow.Table
        As the output ``points`` makes them, in order of time.
    keys : sequence of str
        The key columns in ``points``.
    window : int
        In the unit of the ticks, or in events where ``points`` has a column ``position``.

    Returns
    -------
    pyarrow.Table
        One row per bundle, by the time of its first match point: keys, first, last (times), points (their number),
        errors (the least).

    Complexity: O(p log p) for p match points.

    Examples
    --------
    >>> points = pa.table({"errors": [1, 0, 0], "end": [3, 5, 20], "row": [1, 2, 3]})
    >>> bundles(points, [], window=5).to_pylist()
    [{'first': 3, 'last': 5, 'points': 2, 'errors': 0}, {'first': 20, 'last': 20, 'points': 1, 'errors': 0}]
    """
    order = [(name, "ascending") for name in keys] + [("row", "ascending")]
    points = points.take(pc.sort_indices(points, sort_keys=order)).combine_chunks()
    tag = points.column("position" if "position" in points.column_names else "end")
    tags = tag.cast(pa.int64()).to_numpy()
    starts = np.ones(len(tags), np.bool_)
    starts[1:] = np.diff(tags) > window
    for name in keys:
        column = points.column(name)
        if len(column) > 1:
            starts[1:] |= pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)).to_numpy()
    numbered = points.append_column("bundle", pa.array(np.cumsum(starts)))
    grouped = numbered.group_by("bundle", use_threads=False).aggregate(
        [("end", "first"), ("end", "last"), ("row", "first"), ("row", "count"), ("errors", "min")]
    )
    by_time = pc.sort_indices(grouped, sort_keys=[("row_first", "ascending")])
    grouped, first = grouped.take(by_time), points.take(np.flatnonzero(starts)).take(by_time)
    columns = {name: first.column(name) for name in keys}
    columns.update(
        first=grouped.column("end_first"),
        last=grouped.column("end_last"),
        points=grouped.column("row_count"),
        errors=grouped.column("errors_min"),
    )
    return pa.table(columns)
