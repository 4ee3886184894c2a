"""Match bundles: maximal chains of match points, each at most the window after the one before.

Source: Li and Ge, PVLDB 10(4) 2016, Definition 3. Deviation: with a partition key, bundles are those of each key's own
stream (the paper runs one instance per sub-stream).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.errors import UsageError
from acep_approx.planning.durations import Duration
from history.bundles import Bundles, chain

if TYPE_CHECKING:
    from acep_approx.planning.planner import Plan

SHOWN = ("first", "last", "points", "errors")
"""The columns of a bundle, behind those of its key."""
ROW, FROM, TO = "row", "from", "to"
"""Columns of a chain besides: the row of its first match point, and what tells how far chains lie apart."""


def check_bundles(plan: Plan, key_idle: Duration | None) -> None:
    """Refuse bundles in windows of events whose keys may be dropped.

    Raises
    ------
    UsageError
        ``ACEP-U200``
    """
    if key_idle is not None and plan.is_count_window:
        raise UsageError(
            "key_idle= (--key-idle) and bundles in windows of events do not go together: what chains them is the "
            "numbers of the events of a key",
            code="ACEP-U200",
            hint="leave one of them out, or take the match points",
        )


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
    return shown(joined(chains(points, keys), keys, window), keys)


def chains(points: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Match points as chains of one point each."""
    end = points.column("end")
    tag = (points.column("position") if "position" in points.column_names else end).cast(pa.int64())
    columns = {f"key {place}": points.column(name) for place, name in enumerate(keys)}
    number = pa.array(np.ones(len(points), np.int64))
    more = (end, end, number, points.column("errors"), points.column("row"), tag, tag)
    return pa.table(columns | dict(zip((*SHOWN, ROW, FROM, TO), more, strict=True)))


def joined(parts: pa.Table, keys: Sequence[str], window: int) -> pa.Table:
    """Join chains, in any order, to those that are as long as they can be: chains of chains are chains.

    Returns
    -------
    pyarrow.Table
        The same columns, by the rows of first match points.

    Complexity: O(n log n).
    """
    if not len(parts):
        return parts
    parts, code = by_key(parts, len(keys))
    row, start, end = (parts.column(name).to_numpy() for name in (ROW, FROM, TO))
    number, errors = parts.column("points").to_numpy(), parts.column("errors").to_numpy()
    found, place = chain(Bundles(start, end, code.astype(np.str_), row, number), window, len(parts))
    least = np.full(len(found), errors.max(), errors.dtype)
    np.minimum.at(least, place, errors)
    order = np.lexsort((end, place))
    latest = order[np.append(np.flatnonzero(np.diff(place[order])), len(order) - 1)]
    head = np.argsort(row)[np.searchsorted(np.sort(row), found.row)]
    made = {
        **{name: parts.column(name).take(head) for name in parts.column_names[: len(keys)]},
        "first": parts.column("first").take(head),
        "last": parts.column("last").take(latest),
        "points": pa.array(found.points),
        "errors": pa.array(least),
        ROW: pa.array(found.row),
        FROM: pa.array(found.first),
        TO: pa.array(found.last),
    }
    return pa.table(made, parts.schema).take(np.argsort(found.row, kind="stable"))


def by_key(parts: pa.Table, keys: int) -> tuple[pa.Table, Ints]:
    """Chains in order of their keys, the first columns, and of rows; and a number for each key."""
    names = parts.column_names[:keys]
    order = [(name, "ascending") for name in (*names, ROW)]
    parts = parts.take(pc.sort_indices(parts, sort_keys=order)).combine_chunks()
    begins = np.zeros(len(parts), np.int64)
    for name in names:
        column = parts.column(name)
        if len(column) > 1:
            begins[1:] |= pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)).to_numpy()
    return parts, np.cumsum(begins)


def shown(parts: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Chains as users see them."""
    return parts.drop_columns([ROW, FROM, TO]).rename_columns([*keys, *SHOWN])
