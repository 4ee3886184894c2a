"""Stream transactions: what one event reads of a shared store, what it may write to it, and what is kept of the store.

The store has one version of each item, or all that some transaction may still read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Literal, NamedTuple


class Stamp(NamedTuple):
    """The place of a transaction in the stream: that of its event.

    Attributes
    ----------
    ts : int
        Application time of the event.
    arrival : int
        Its number in the order in which events came. It decides between events of one time, for the paper only says
        that their order is up to the application (Definition 6, 4).
    """

    ts: int
    arrival: int


class Item(NamedTuple):
    """One row of a shared table.

    Attributes
    ----------
    table : str
        Name of the table.
    key : hashable
        Which row; None for a table of one row.
    """

    table: str
    key: Hashable = None


Values = Mapping[Item, object]
"""Values of items; an item that is not there is None."""


def nothing(seen: Values) -> Values:  # noqa: ARG001
    """What a transaction writes that only reads."""
    return {}


@dataclass(frozen=True, eq=False)
class Transaction:
    """All that one event causes (Definition 7): it reads, decides, and writes.

    Attributes
    ----------
    stamp : Stamp
        Its place; no two transactions have the same.
    reads : tuple of Item
        What it reads, each as it is before this transaction.
    writes : tuple of Item
        What it may write. Which of these it does is known when it has read.
    decide : callable
        Gets the values that were read, by item, and gives those to write; their items are some of ``writes``.
    """

    stamp: Stamp
    reads: tuple[Item, ...] = ()
    writes: tuple[Item, ...] = ()
    decide: Callable[[Values], Values] = nothing


class Operation(NamedTuple):
    """A read or a write that was done; a history is a list of them, in the order in which they were done."""

    kind: Literal["read", "write"]
    stamp: Stamp
    item: Item
    value: object


FIRST = Stamp(-(2**63), -1)
"""The stamp of what was loaded: before all transactions."""


class Version(NamedTuple):
    """A value, and the transaction that wrote it."""

    stamp: Stamp
    value: object


class OneVersion:
    """A store that knows the present alone: a read gives what was written last, whoever wrote it."""

    def __init__(self, rows: Values) -> None:
        self._rows = dict(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, item: Item) -> object:
        """The value of an item."""
        return self._rows.get(item)

    def write(self, item: Item, value: object) -> None:
        """Put a value in the place of the one before."""
        self._rows[item] = value

    def final(self) -> dict[Item, object]:
        """All values."""
        return dict(self._rows)


class Versions:
    """A store that knows what was before: a read gets the last version that was written before its own stamp.

    The paper keeps all versions for ever. Here a version goes when the one behind it is older than the *horizon*, the
    first transaction that may still read: no reader will ask for it. O(log n) for each write.

    Parameters
    ----------
    rows : mapping of Item to object
        What is loaded.
    keeps_all : bool
        Whether nothing goes, as in the paper.
    """

    def __init__(self, rows: Values, *, keeps_all: bool = False) -> None:
        self._of = {item: deque([Version(FIRST, value)]) for item, value in rows.items()}
        self._replaced: list[tuple[Stamp, int, Item]] = []
        self._writes = 0
        self._count = len(self._of)
        self._keeps_all = keeps_all

    def __len__(self) -> int:
        """How many versions there are, of all items."""
        return self._count

    def read(self, item: Item, before: Stamp) -> object:
        """The last version of an item that a transaction before a stamp wrote; None if there is none."""
        versions = self._of.get(item, ())
        place = bisect_left(versions, before, key=lambda version: version.stamp)
        return versions[place - 1].value if place else None

    def write(self, item: Item, value: object, stamp: Stamp) -> None:
        """Add the version of a transaction; writes of one item come in the order of the stream."""
        versions = self._of.setdefault(item, deque())
        if versions and versions[-1].stamp == stamp:
            versions[-1] = Version(stamp, value)
            return
        if versions and not self._keeps_all:
            # numbered, since items need not have an order
            heappush(self._replaced, (stamp, self._writes, item))
        self._writes += 1
        self._count += 1
        versions.append(Version(stamp, value))

    def collect(self, horizon: Stamp) -> int:
        """Let go what no transaction from a stamp on can read; gives how many versions."""
        gone = 0
        while self._replaced and self._replaced[0][0] < horizon:
            self._of[heappop(self._replaced)[2]].popleft()
            gone += 1
        self._count -= gone
        return gone

    def versions(self, item: Item) -> list[Version]:
        """The versions of an item, the oldest first; to look at."""
        return list(self._of.get(item, ()))

    def final(self) -> dict[Item, object]:
        """The last version of each item."""
        return {item: versions[-1].value for item, versions in self._of.items()}
