"""How many different values a column has: exactly while they are few, then about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.events.columns import to_numpy

EXACT = 10_000
"""Different values that are counted one by one."""
KEPT = 4_096
"""Least hash values that are kept of more: the estimate is right to within 1.6% (one standard deviation)."""
_WHOLE = float(2**64)
Hashes = npt.NDArray[np.uint64]


class DistinctValues:
    """The different values of a column, batch by batch, in bounded memory.

    Notes
    -----
    Up to ``EXACT`` values are kept with their counts. Of more the least ``KEPT`` values of a hash are kept, and their
    number follows from how close these lie: the estimator of Bar-Yossef et al., "Counting distinct elements in a data
    stream" (RANDOM 2002).

    Examples
    --------
    >>> values = DistinctValues()
    >>> values.add(pa.array(["a", "b", "a"]), pa.array([5, 1, 2]))
    >>> values.count, values.is_exact, values.most_frequent(1)
    (2, True, [('a', 7)])
    """

    def __init__(self) -> None:
        self._counts: dict[Any, int] | None = {}
        self._least: Hashes = np.zeros(0, np.uint64)

    @property
    def is_exact(self) -> bool:
        """Whether ``count`` is a count, and no estimate."""
        return self._counts is not None

    @property
    def count(self) -> int:
        """How many there are; an estimate of two digits where they are many."""
        if self._counts is not None:
            return len(self._counts)
        estimate = (KEPT - 1) * _WHOLE / float(self._least[-1])
        return max(EXACT, int(float(f"{estimate:.1e}")))

    def add(self, values: pa.Array, counts: pa.Array) -> None:
        """Take in the different values of a batch, without null, and how often each occurs."""
        if self._counts is not None:
            known = self._counts
            for value, count in zip(values.to_pylist(), counts.to_pylist(), strict=True):
                known[value] = known.get(value, 0) + count
            if len(known) <= EXACT:
                return
            values, self._counts = pa.array(list(known), values.type), None
        merged = np.union1d(self._least, hashes(values))
        self._least = merged[:KEPT]

    def most_frequent(self, most: int) -> list[tuple[Any, int]]:
        """The most frequent values with their counts, those that came first before others; none where they are many."""
        return sorted((self._counts or {}).items(), key=lambda item: -item[1])[:most]

    def first(self, most: int) -> list[Any]:
        """The first values; none where they are many."""
        return list(self._counts or ())[:most]


def hashes(values: pa.Array) -> Hashes:
    """A hash of each value; none is null.

    Examples
    --------
    >>> one, two, three = hashes(pa.array(["ab", "ba", "ab"])).tolist()
    >>> one == three, one == two
    (True, False)
    """
    type_ = values.type
    if pa.types.is_floating(type_):
        return _mixed(to_numpy(values.cast(pa.float64())).view(np.uint64))
    if pa.types.is_integer(type_):
        return _mixed(to_numpy(values).astype(np.int64, copy=False).view(np.uint64))
    if pa.types.is_temporal(type_):
        return hashes(values.cast(pa.int32() if type_.bit_width == 32 else pa.int64()))
    return _of_texts(values.cast(pa.large_binary()) if _is_text(type_) else _spelled(values))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_binary(type_))


def _spelled(values: pa.Array) -> pa.Array:
    texts: Sequence[str] = [str(value) for value in values.to_pylist()]
    return pa.array(texts, pa.string()).cast(pa.large_binary())


def _of_texts(values: pa.Array) -> Hashes:
    """The sum over the bytes of a text of a hash of each and its place: texts of a batch at once."""
    if not len(values):
        return np.zeros(0, np.uint64)
    lengths = to_numpy(pc.binary_length(values)).astype(np.int64)
    ends = np.cumsum(lengths)
    data = np.frombuffer(b"".join(values.to_pylist()), np.uint8).astype(np.uint64)
    places = np.arange(len(data)) - np.repeat(ends - lengths, lengths)
    sums = np.concatenate(
        (np.zeros(1, np.uint64), np.cumsum(_mixed(data + (places.astype(np.uint64) << np.uint64(8)))))
    )
    return _mixed(sums[ends] - sums[ends - lengths] + lengths.astype(np.uint64))


def _mixed(values: Hashes) -> Hashes:
    """The finaliser of SplitMix64 (Steele et al. 2014): every bit depends on every bit."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
