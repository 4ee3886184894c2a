"""Flat arrays: larger ones, and lists of different lengths in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from history.arrays import Bools, Floats, Ints

__all__ = ["Bools", "ByKey", "Floats", "Ints", "Ragged", "by_key", "extended", "firsts", "places", "zeros"]


def extended(array: Ints, size: int, fill: int | None = None) -> Ints:
    """A larger array that begins like ``array``; behind it stands ``fill``, or what happens to be there."""
    larger = np.empty(size, np.int64) if fill is None else np.full(size, fill, np.int64)
    larger[: array.size] = array
    return larger


_ZEROS: dict[type, npt.NDArray[Any]] = {}


def zeros(size: int, kind: type = np.int64) -> npt.NDArray[Any]:
    """So many zeros, the same for all who ask and not to be written to: a column of them costs no memory of its own."""
    if kind not in _ZEROS or _ZEROS[kind].size < size:
        _ZEROS[kind] = np.zeros(size, kind)
        _ZEROS[kind].flags.writeable = False
    return _ZEROS[kind][:size]


def places(first: Ints, lengths: Ints) -> Ints:
    """The places of all items of some lists, one list after the other.

    Examples
    --------
    >>> places(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    return np.arange(lengths.sum()) + np.repeat(first - np.cumsum(lengths) + lengths, lengths)


def firsts(*columns: Ints) -> Ints:
    """Where something new begins in sorted columns.

    Examples
    --------
    >>> firsts(np.array([4, 4, 7]), np.array([1, 2, 2])).tolist()
    [0, 1, 2]
    """
    if len(columns[0]) < 2:
        return np.arange(len(columns[0]))
    differ = np.ones(len(columns[0]), np.bool_)
    differ[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return np.flatnonzero(differ)


class ByKey(NamedTuple):
    """Places grouped by key: group ``g`` is ``order[first[g] : first[g + 1]]``, in order, and has ``key[g]``."""

    key: Ints
    first: Ints
    order: Ints

    def some(self, groups: Bools) -> Ints:
        """The places of some groups, in order."""
        return np.sort(self.order[np.repeat(groups, np.diff(self.first))])

    def only(self, wanted: Bools) -> ByKey:
        """The groups without the places that are not wanted."""
        kept = wanted[self.order]
        if kept.all():
            return self
        return ByKey(self.key, np.append(0, np.cumsum(kept))[self.first], self.order[kept])


def by_key(keys: Ints) -> ByKey:
    """Group places by their keys, those below 0 left out.

    Examples
    --------
    >>> found = by_key(np.array([7, 2, -1, 7]))
    >>> found.key.tolist(), found.first.tolist(), found.order.tolist()
    ([2, 7], [0, 1, 3], [1, 0, 3])
    """
    few = (keys + 1).astype(np.uint16) if keys.max(initial=0) < (1 << 16) - 1 else keys  # sorted by their digits
    order = np.argsort(few, kind="stable")[int((keys < 0).sum()) :]
    keys = keys[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    return ByKey(keys[first], np.append(first, len(keys)), order)


class Ragged:
    """Lists as columns, for dataclasses: item ``i`` has ``offset[i] : offset[i + 1]`` of the columns ``PER_EVENT``."""

    PER_EVENT: ClassVar[tuple[str, ...]] = ("id", "arc")
    offset: Ints

    def __len__(self) -> int:
        return len(self.offset) - 1

    def take(self, which: Ints) -> Self:
        """Some of the items, in the order given."""
        lengths = np.diff(self.offset)[which]
        place = places(self.offset[:-1][which], lengths)
        columns = {name: getattr(self, name)[place if name in self.PER_EVENT else which] for name in self._columns()}
        return self._of(_offset(lengths), columns)

    def backwards(self) -> Self:
        """The items from the last to the first, and what each of them has turned round, too."""
        columns = {name: getattr(self, name)[::-1].copy() for name in self._columns()}  # kernels want them in a row
        return self._of(self.offset[-1] - self.offset[::-1], columns)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The items of several parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        lengths = np.concatenate([np.zeros(0, np.int64), *(np.diff(part.offset) for part in parts)])
        none = np.zeros(0, np.int64)
        columns: dict[str, Any] = {
            name: np.concatenate([none, *(getattr(part, name) for part in parts)]) for name in cls._columns()
        }
        return cls._of(_offset(lengths), columns)

    @classmethod
    def _of(cls, offset: Ints, columns: dict[str, Any]) -> Self:
        return cls(offset=offset, **columns)  # type: ignore[call-arg]  # every dataclass of this kind has them

    @classmethod
    def _columns(cls) -> list[str]:
        return [f.name for f in fields(cls) if f.name != "offset"]  # type: ignore[arg-type]


def _offset(lengths: Ints) -> Ints:
    return np.concatenate(([0], np.cumsum(lengths)))
