"""The queries of a set by their numbers: the id of each, and what it is a part of."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np

from acep_approx.arrays import Ints

FEW = 64
"""Places of queries that are gone which are not worth making the lists anew."""
Owner = TypeVar("Owner")


class Numbered(Generic[Owner]):
    """Ids and owners of numbers that come in rising order: three flat lists, as dicts take four times the room.

    Examples
    --------
    >>> known = Numbered()
    >>> known.add([3, 4, 9], ["a", "b", "c"], "mine")
    >>> known.id(9), known.pop(4), list(known)
    ('c', ('b', 'mine'), [(3, 'a', 'mine'), (9, 'c', 'mine')])
    """

    def __init__(self) -> None:
        self._numbers = array("q")
        self._ids: list[str | None] = []  # None: it is gone
        self._owners: list[Owner] = []
        self._gone = 0

    def add(self, numbers: Sequence[int], ids: Iterable[str], owner: Owner) -> None:
        """Take in numbers above all that there are."""
        self._numbers.extend(numbers)
        self._ids += ids
        self._owners += [owner] * len(numbers)

    def _place(self, number: int) -> int:
        return bisect_left(self._numbers, number)

    def _is_at(self, number: int, place: int) -> bool:
        return place < len(self._numbers) and self._numbers[place] == number and self._ids[place] is not None

    def owner(self, number: int) -> Owner:
        """What a number is a part of. Complexity: O(log n)."""
        return self._owners[self._place(number)]

    def id(self, number: int) -> str | None:
        """The id of a number; None where it is gone. Complexity: O(log n)."""
        place = self._place(number)
        return self._ids[place] if self._is_at(number, place) else None

    def of(self, numbers: Ints) -> tuple[list[str | None], list[Owner]]:
        """The ids and the owners of numbers that are there."""
        places = np.searchsorted(np.asarray(self._numbers), numbers).tolist()
        # no pairs: thousands of them make Python look for garbage all the time
        return [self._ids[place] for place in places], [self._owners[place] for place in places]

    def pop(self, number: int) -> tuple[str, Owner]:
        """Forget a number; gives its id and owner. Complexity: O(log n), on average."""
        place = self._place(number)
        id_, owner = self._ids[place], self._owners[place]
        assert id_ is not None, "it is there"
        self._ids[place] = None
        self._gone += 1
        if self._gone > max(FEW, len(self._ids) // 2):
            stay = [place for place, id_ in enumerate(self._ids) if id_ is not None]
            self._numbers = array("q", [self._numbers[place] for place in stay])
            self._ids, self._owners = [self._ids[place] for place in stay], [self._owners[place] for place in stay]
            self._gone = 0
        return id_, owner

    def give(self, numbers: Iterable[int], before: Owner, after: Owner) -> int:
        """Let some numbers be parts of another owner, if they are there and have this one; gives how many did."""
        given = 0
        for number in numbers:
            place = self._place(number)
            if self._is_at(number, place) and self._owners[place] is before:
                self._owners[place] = after
                given += 1
        return given

    def __iter__(self) -> Iterator[tuple[int, str, Owner]]:
        for number, id_, owner in zip(self._numbers, self._ids, self._owners, strict=True):
            if id_ is not None:
                yield number, id_, owner
