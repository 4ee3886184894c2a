"""Aggregates over the events that Kleene variables bind: whole columns of matches at once, NULL as in SQL."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.errors import DataError
from acep_approx.events.columns import to_arrow, to_numpy


def aggregate(function: str, values: pa.Array, lengths: Ints) -> pa.Array:
    """One value per list.

    Parameters
    ----------
    function : {"count", "count distinct", "sum", "min", "max", "avg", "stddev"}
        NULL is skipped. ``sum``, ``min``, ``max`` and ``avg`` of a list with nothing else are NULL, and so is
        ``stddev``, the sample standard deviation, of a list with fewer than two values.
    values : pyarrow.Array
        The lists, one after the other: int64, float64 without NaN, strings or timestamps; for ``count distinct``
        booleans, too. ``sum``, ``avg`` and ``stddev`` take numbers only.
    lengths : numpy.ndarray of int64
        How many of the values each list has.

    Returns
    -------
    pyarrow.Array
        ``count``, ``count distinct``: int64; ``avg``, ``stddev``: float64; else the type of ``values``.

    Raises
    ------
    DataError
        ``ACEP-D201``: a sum of whole numbers is beyond 64 bits.

    Notes
    -----
    O(values), plus sorting the distinct ones for ``min`` and ``max`` of strings, and all for ``count distinct``.

    Examples
    --------
    >>> aggregate("sum", pa.array([1, 2, None, 5]), np.array([2, 0, 2])).to_pylist()
    [3, None, 5]
    """
    ends = np.concatenate(([0], np.cumsum(to_numpy(values.is_valid()), dtype=np.int64)))[np.cumsum(lengths)]
    counts = np.diff(ends, prepend=0)
    if function == "count":
        return to_arrow(counts)
    known, some = values.drop_null(), counts > 0
    if function == "count distinct":
        return to_arrow(_distinct(known, counts))
    if not len(known):
        return pa.nulls(len(lengths), pa.float64() if function in ("avg", "stddev") else values.type)
    starts = (ends - counts)[some]
    if function in ("min", "max"):
        found = _extreme(np.minimum if function == "min" else np.maximum, known, starts)
    elif function == "stddev":
        found = _deviations(to_numpy(known), starts, counts[some])
    else:
        sums = _sums(to_numpy(known), starts)
        found = pa.array(sums if function == "sum" else sums / counts[some])
    return found.take(pa.array(np.cumsum(some) - 1, mask=~some))


def _extreme(least: np.ufunc, known: pa.Array, starts: Ints) -> pa.Array:
    """The least or the greatest of each list; of strings by the ranks of the distinct ones."""
    if not pa.types.is_string(known.type) and not pa.types.is_large_string(known.type):
        numbers = known.view(pa.int64()) if pa.types.is_timestamp(known.type) else known
        return pa.array(least.reduceat(to_numpy(numbers), starts)).view(known.type)
    encoded = known.dictionary_encode()
    order = to_numpy(pc.sort_indices(encoded.dictionary)).astype(np.int64)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    best = least.reduceat(ranks[to_numpy(encoded.indices)], starts)
    return encoded.dictionary.take(to_arrow(order[best]))


def _distinct(known: pa.Array, counts: Ints) -> Ints:
    """The number of different values in each list, of which ``counts`` says how long it is; 0.0 and -0.0 are one."""
    values = to_numpy(known.dictionary_encode().indices) if not _is_number(known) else to_numpy(known)
    lists = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((values, lists))
    lists, values = lists[order], values[order]
    is_new = np.ones(len(lists), np.bool_)
    is_new[1:] = (lists[1:] != lists[:-1]) | (values[1:] != values[:-1])
    return np.bincount(lists[is_new], minlength=len(counts)).astype(np.int64)


def _is_number(values: pa.Array) -> bool:
    return bool(pa.types.is_integer(values.type) or pa.types.is_floating(values.type))


def _deviations(values: npt.NDArray[Any], starts: Ints, counts: Ints) -> pa.Array:
    """The sample standard deviation of each list.

    Each value is taken as its distance from the first one of its list, so that equal values give exactly 0 and large
    ones lose no digits; then come the mean and the squares of the distances from it (two passes).
    """
    first = np.repeat(values[starts], counts)
    with np.errstate(all="ignore"):  # an infinity gives NaN, which is NULL
        shifted = values.astype(np.float64) - first
        if values.dtype == np.int64:
            exact = values - first
            shifted = np.where((exact >= 0) == (values >= first), exact, shifted)
        shifted -= np.repeat(np.add.reduceat(shifted, starts) / counts, counts)
        found = np.sqrt(np.add.reduceat(shifted * shifted, starts) / (counts - 1))
    return pa.array(found, mask=np.isnan(found))


def _sums(values: npt.NDArray[Any], starts: Ints) -> npt.NDArray[Any]:
    """Sums of each list. Those of int64 are exact: the halves of the numbers are summed apart, and cannot overflow."""
    if values.dtype == np.float64:
        with np.errstate(all="ignore"):  # what comes of infinities is NaN, which is NULL
            return np.add.reduceat(values, starts)
    high, low = np.add.reduceat(values >> 32, starts), np.add.reduceat(values & 0xFFFFFFFF, starts)
    high += low >> 32
    if (high != high.astype(np.int32)).any():
        raise DataError(
            "a sum or average of whole numbers in RETURN passed the range of 64 bits",
            code="ACEP-D201",
            hint="make the column one of numbers with a fraction: their sums may be as large as they like",
        )
    wholes: Ints = high << 32 | low & 0xFFFFFFFF
    return wholes
