"""Lock tables: for each unit that can be locked, which transactions hold or want a lock, and the first of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from heapq import heappop, heappush

from acep_approx.rules.schedules.transactions import Item, Stamp

Unit = Hashable
"""What is locked as a whole: a table, or a row."""


def by_row(item: Item) -> Unit:
    """A lock for each row: the key of the row must be known from the event."""
    return item


def by_table(item: Item) -> Unit:
    """One lock for all rows of a table."""
    return item.table


class Stamps:
    """A set of stamps that knows its least one: ``add``, ``remove`` and ``least`` in O(log n), amortised."""

    def __init__(self) -> None:
        self._heap: list[Stamp] = []
        self._there: set[Stamp] = set()

    def __len__(self) -> int:
        return len(self._there)

    def __iter__(self) -> Iterator[Stamp]:
        return iter(self._there)

    def add(self, stamp: Stamp) -> None:
        """Put a stamp in."""
        self._there.add(stamp)
        heappush(self._heap, stamp)

    def remove(self, stamp: Stamp) -> None:
        """Take a stamp out."""
        self._there.remove(stamp)

    def least(self) -> Stamp | None:
        """The least stamp, None if there is none."""
        while self._heap and self._heap[0] not in self._there:
            heappop(self._heap)
        return self._heap[0] if self._heap else None


class LockTable:
    """The locks of one kind, by unit: ``xLockQueue`` or ``sLockQueue`` of Algorithm 2.

    Parameters
    ----------
    lock : callable
        The unit of an item: :func:`by_row` or :func:`by_table`.
    """

    def __init__(self, lock: Callable[[Item], Unit]) -> None:
        self.lock = lock
        self._queues: dict[Unit, Stamps] = {}

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def insert(self, stamp: Stamp, items: Iterable[Item]) -> None:
        """Locks of a transaction on the units of some items, one for each."""
        for unit in {self.lock(item) for item in items}:
            if unit not in self._queues:
                self._queues[unit] = Stamps()
            self._queues[unit].add(stamp)

    def release(self, stamp: Stamp, items: Iterable[Item]) -> None:
        """Take these locks away; a unit without locks takes no memory."""
        for unit in {self.lock(item) for item in items}:
            self._queues[unit].remove(stamp)
            if not self._queues[unit]:
                del self._queues[unit]

    def least(self, item: Item) -> Stamp | None:
        """The first transaction in the order of the stream with a lock on the unit of an item; None: there is none."""
        queue = self._queues.get(self.lock(item))
        return None if queue is None else queue.least()

    def holders(self, item: Item) -> list[Stamp]:
        """All transactions with a lock on the unit of an item, in the order of the stream; to look at."""
        queue = self._queues.get(self.lock(item))
        return [] if queue is None else sorted(queue)
